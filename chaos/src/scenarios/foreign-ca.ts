// A CA that has nothing to do with any installation: what is left in place of the right one on a host whose
// bundle is old. Its key was thrown away when it was made.

export const foreignCa = `-----BEGIN CERTIFICATE-----
MIIBoTCCAUegAwIBAgIUOhuBmmzyuJ5jaVmEh88f8xxp8EAwCgYIKoZIzj0EAwIw
JTEjMCEGA1UEAwwaYW4gb2xkIENBIG9mIHNvbWVib2R5IGVsc2UwIBcNMjYxMTE2
MDcxMDQ0WhgPMjEyNjEwMjMwNzEwNDRaMCUxIzAhBgNVBAMMGmFuIG9sZCBDQSBv
ZiBzb21lYm9keSBlbHNlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEnswNacvX
r/Qcz1tz+xr5EuFNp2XvA07SDRhzs18wBy2zBDaLljDEgu+KzVQmKFZnPHGwDPcQ
SRJRvWMi3Flat6NTMFEwHQYDVR0OBBYEFMCEtZw2UzdPZ3Lbe1jhhJDVzKXYMB8G
A1UdIwQYMBaAFMCEtZw2UzdPZ3Lbe1jhhJDVzKXYMA8GA1UdEwEB/wQFMAMBAf8w
CgYIKoZIzj0EAwIDSAAwRQIhAIVaIlV0i3afaXOhuIeon1X3Y56fGIPsyFeKKUyb
c2DyAiBmzkfX0oqcRouEFCMrJ8C6NpKLVaLg6kuiLafMAm3flg==
-----END CERTIFICATE-----
`;
