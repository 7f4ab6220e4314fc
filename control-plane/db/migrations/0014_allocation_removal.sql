-- What the node said about the user when its allocation was released. Null: not released, or released before this
-- was recorded. src/allocations/reconcile.ts writes it.

ALTER TABLE allocations
  ADD COLUMN removal text
    CHECK (removal IN ('removed', 'nothing_to_remove', 'left_alone', 'own_account', 'unconfirmed')),
  ADD CHECK (removal IS NULL OR status = 'released');
GRANT UPDATE (removal) ON allocations TO holdfast_system;
