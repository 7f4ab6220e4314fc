-- Tenant requests and everything else use separate logins, each a member of one runtime role. The embedded database
-- used to have a single login that could become both; it is no longer used.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'holdfast_runtime') THEN
    REVOKE holdfast_app, holdfast_system FROM holdfast_runtime;
  END IF;
EXCEPTION WHEN insufficient_privilege THEN
  -- Somebody else's role of that name. The api checks its own login at every start.
  NULL;
END $$;
