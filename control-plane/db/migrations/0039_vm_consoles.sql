-- Terminals on the serial consoles of VMs (ADR 55): a terminal is at an allocation or at a lease, never at both.
ALTER TABLE terminal_sessions ALTER COLUMN allocation_id DROP NOT NULL;
ALTER TABLE terminal_sessions ADD COLUMN lease_id uuid;
ALTER TABLE terminal_sessions ADD FOREIGN KEY (org_id, lease_id) REFERENCES vm_leases (org_id, id) ON DELETE CASCADE;
ALTER TABLE terminal_sessions ADD CHECK (num_nonnulls(allocation_id, lease_id) = 1);
CREATE INDEX terminal_sessions_of_lease ON terminal_sessions (lease_id, id DESC) WHERE lease_id IS NOT NULL;
