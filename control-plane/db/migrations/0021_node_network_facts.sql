-- Where a node is: the address that it last reported, whose machine it is, and on which side of the network.

ALTER TABLE nodes
  -- Of the host's connection to the server. It is never dialled.
  ADD COLUMN address                  text,
  ADD COLUMN provider                 text,
  ADD COLUMN network_side             text,
  -- What an operator set stays, whatever the agent reports.
  ADD COLUMN provider_by_operator     boolean NOT NULL DEFAULT false,
  ADD COLUMN network_side_by_operator boolean NOT NULL DEFAULT false,
  ADD CHECK (provider IS NOT NULL OR NOT provider_by_operator),
  ADD CHECK (network_side IS NOT NULL OR NOT network_side_by_operator);
GRANT UPDATE (provider, network_side, provider_by_operator, network_side_by_operator) ON nodes TO holdfast_app;
GRANT UPDATE (address, provider, network_side) ON nodes TO holdfast_system;

-- Finds the nodes that were compared with an older profile, without reading the others.
CREATE INDEX node_observations_profile ON node_observations (((detail->>'profile_version')::integer))
  WHERE kind = 'profile' AND replaced_at IS NULL;
