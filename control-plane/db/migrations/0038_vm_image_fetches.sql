-- Images that hosts fetch by themselves, and what hosts are ordered to do about images.

ALTER TABLE vm_images DROP CONSTRAINT vm_images_source_check;
ALTER TABLE vm_images ADD CONSTRAINT vm_images_source_check CHECK (source IN ('manual_local', 'remote_cache'));
ALTER TABLE vm_images ADD COLUMN url text;
ALTER TABLE vm_images ADD CONSTRAINT vm_images_url_check CHECK ((source = 'remote_cache') = (url IS NOT NULL));
GRANT UPDATE (source, url) ON vm_images TO holdfast_app;

-- At most one for a host and an image: the outstanding one, or the last one that failed.
CREATE TABLE vm_image_orders (
  node_id  uuid NOT NULL,
  org_id   uuid NOT NULL,
  image_id text NOT NULL,
  action   text NOT NULL CHECK (action IN ('fetch', 'remove')),
  sha256   text NOT NULL,
  -- Null: it failed.
  task_id  uuid,
  -- That failed in a row.
  failures integer NOT NULL DEFAULT 0,
  failure  json,
  retry_at timestamptz,
  PRIMARY KEY (node_id, image_id),
  FOREIGN KEY (org_id, node_id) REFERENCES vm_hosts (org_id, node_id),
  FOREIGN KEY (org_id, image_id) REFERENCES vm_images (org_id, id),
  CHECK ((task_id IS NULL) = (failure IS NOT NULL AND retry_at IS NOT NULL))
);
ALTER TABLE vm_image_orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE vm_image_orders FORCE ROW LEVEL SECURITY;
CREATE POLICY app ON vm_image_orders TO holdfast_app USING (org_id = current_org());
CREATE POLICY system ON vm_image_orders TO holdfast_system USING (true);
GRANT SELECT, INSERT, UPDATE (action, sha256, task_id, failures, failure, retry_at) ON vm_image_orders TO holdfast_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON vm_image_orders TO holdfast_system;
