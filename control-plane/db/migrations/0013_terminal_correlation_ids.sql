-- A person quotes the correlation id of an error; the terminal it belongs to is found by it.
CREATE INDEX terminal_sessions_correlation ON terminal_sessions (correlation_id);
CREATE INDEX terminal_sessions_failure_correlation ON terminal_sessions ((failure ->> 'correlation_id'))
  WHERE failure IS NOT NULL;
CREATE INDEX terminal_tokens_correlation ON terminal_tokens (correlation_id);
