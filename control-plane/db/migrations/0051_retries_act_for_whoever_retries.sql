-- Whoever retries a run answers for what follows: from there on, its steps use the secrets that this person may use.
GRANT UPDATE (user_id) ON workflow_runs TO holdfast_app;
