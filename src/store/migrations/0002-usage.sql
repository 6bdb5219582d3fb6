-- one row a request to a model provider, as the gateway read it from the answer
CREATE TABLE usage (
  seq INTEGER PRIMARY KEY,
  business TEXT NOT NULL,
  at TEXT NOT NULL,
  run TEXT NOT NULL,
  instance TEXT NOT NULL,
  role TEXT NOT NULL,
  task TEXT,
  family TEXT NOT NULL,
  model TEXT NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  -- 0: the answer broke off, and more was used than it said
  complete INTEGER NOT NULL
) STRICT;
CREATE INDEX usage_at ON usage (business, at);
CREATE TRIGGER usage_no_update BEFORE UPDATE ON usage BEGIN SELECT RAISE(ABORT, 'usage is append-only'); END;
CREATE TRIGGER usage_no_delete BEFORE DELETE ON usage BEGIN SELECT RAISE(ABORT, 'usage is append-only'); END;
