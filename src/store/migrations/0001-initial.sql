CREATE TABLE sessions (
  seq INTEGER PRIMARY KEY,
  run TEXT NOT NULL UNIQUE,
  business TEXT NOT NULL,
  instance TEXT NOT NULL,
  role TEXT NOT NULL,
  task TEXT,
  harness TEXT NOT NULL,
  model TEXT NOT NULL,
  family TEXT NOT NULL,
  network TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('starting', 'running', 'stopping', 'ended')),
  launched_by TEXT NOT NULL,
  launched_by_kind TEXT NOT NULL CHECK (launched_by_kind IN ('founder', 'session')),
  launched_by_run TEXT,
  run_dir TEXT NOT NULL,
  env TEXT NOT NULL,
  env_root TEXT NOT NULL,
  env_outcome TEXT,
  env_identity TEXT,
  manifest TEXT NOT NULL,
  plan_hash TEXT,
  monitor_pid INTEGER,
  monitor_start TEXT,
  init_pid INTEGER,
  init_start TEXT,
  runner_pid INTEGER,
  runner_start TEXT,
  boot_id TEXT,
  started_at TEXT NOT NULL,
  claimed_at TEXT,
  ended_at TEXT,
  reason TEXT,
  exit_code INTEGER,
  signal TEXT
) STRICT;
CREATE INDEX sessions_live ON sessions (instance) WHERE state <> 'ended';
CREATE INDEX sessions_of ON sessions (business, instance, seq);
CREATE INDEX sessions_env ON sessions (business, env) WHERE state <> 'ended';

CREATE TABLE launch_log (
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  event TEXT NOT NULL CHECK (event IN ('launch', 'refused', 'end', 'checkout-kept')),
  run TEXT,
  instance TEXT NOT NULL,
  code TEXT,
  fields TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX launch_log_one_end ON launch_log (run) WHERE event = 'end';
CREATE INDEX launch_log_event ON launch_log (event, seq);
CREATE TRIGGER launch_log_no_update BEFORE UPDATE ON launch_log BEGIN SELECT RAISE(ABORT, 'the launch log is append-only'); END;
CREATE TRIGGER launch_log_no_delete BEFORE DELETE ON launch_log BEGIN SELECT RAISE(ABORT, 'the launch log is append-only'); END;

CREATE TABLE trail (
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT,
  actor_kind TEXT NOT NULL CHECK (actor_kind = 'founder' OR actor_kind = 'session' OR actor_kind = 'host'),
  actor_name TEXT NOT NULL,
  actor_run TEXT,
  body TEXT NOT NULL,
  hash TEXT NOT NULL
) STRICT;
CREATE INDEX trail_subject ON trail (subject, seq) WHERE subject IS NOT NULL;
CREATE INDEX trail_actor ON trail (actor_run, seq) WHERE actor_run IS NOT NULL;
CREATE INDEX trail_kind ON trail (kind, seq) WHERE kind <> 'message.sent' AND kind <> 'message.answered';
CREATE TRIGGER trail_no_update BEFORE UPDATE ON trail BEGIN SELECT RAISE(ABORT, 'the trail is append-only'); END;
CREATE TRIGGER trail_no_delete BEFORE DELETE ON trail BEGIN SELECT RAISE(ABORT, 'the trail is append-only'); END;

-- of more than two constants IN builds a table at each row, which doubles the cost of an insert: hence OR
CREATE TABLE messages (
  seq INTEGER PRIMARY KEY,
  business TEXT NOT NULL,
  at TEXT NOT NULL,
  from_kind TEXT NOT NULL CHECK (from_kind = 'founder' OR from_kind = 'session' OR from_kind = 'host'),
  from_role TEXT NOT NULL,
  from_instance TEXT NOT NULL,
  from_run TEXT,
  recipient TEXT NOT NULL,
  class TEXT NOT NULL CHECK (class = 'REQUEST' OR class = 'RESULT' OR class = 'NOTE'),
  subject TEXT,
  body TEXT NOT NULL,
  in_reply_to INTEGER REFERENCES messages (seq),
  deadline TEXT,
  failed INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state = 'accepted' OR state = 'delivered' OR state = 'acknowledged' OR state = 'answered' OR state = 'dead'),
  -- the run that received it last, and over which of its connections; both mean nothing once it is acknowledged
  given_run TEXT,
  given_connection INTEGER,
  -- runs that ended while they had it
  deaths INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX messages_waiting ON messages (business, recipient, seq) WHERE state = 'accepted';
CREATE INDEX messages_unread ON messages (recipient, from_run) WHERE state IN ('accepted', 'delivered') AND from_run IS NOT NULL AND class <> 'RESULT';
CREATE INDEX messages_given ON messages (given_run) WHERE state IN ('accepted', 'delivered') AND given_run IS NOT NULL;
CREATE INDEX messages_owed ON messages (business, seq) WHERE class = 'REQUEST' AND state <> 'answered' AND state <> 'dead';
CREATE INDEX messages_replies ON messages (in_reply_to) WHERE in_reply_to IS NOT NULL;
CREATE INDEX messages_founder ON messages (business, seq) WHERE recipient = 'founder';

CREATE TABLE tasks (
  seq INTEGER PRIMARY KEY,
  business TEXT NOT NULL,
  id TEXT NOT NULL,
  title TEXT NOT NULL,
  body TEXT NOT NULL,
  project TEXT,
  assignee TEXT,
  state TEXT NOT NULL CHECK (state IN ('open', 'closed')),
  created_by TEXT NOT NULL,
  created_by_kind TEXT NOT NULL CHECK (created_by_kind IN ('founder', 'session')),
  created_at TEXT NOT NULL,
  closed_at TEXT,
  UNIQUE (business, id)
) STRICT;

CREATE TABLE pushes (
  seq INTEGER PRIMARY KEY,
  task_seq INTEGER NOT NULL REFERENCES tasks (seq),
  at TEXT NOT NULL,
  project TEXT NOT NULL,
  ref TEXT NOT NULL,
  commit_oid TEXT NOT NULL,
  run TEXT NOT NULL,
  instance TEXT NOT NULL
) STRICT;
CREATE INDEX pushes_task ON pushes (task_seq, seq);

CREATE TABLE review_requests (
  seq INTEGER PRIMARY KEY,
  push_seq INTEGER NOT NULL REFERENCES pushes (seq),
  at TEXT NOT NULL,
  requested_by TEXT NOT NULL,
  verdict TEXT CHECK (verdict IN ('approve', 'reject')),
  reviewer TEXT,
  note TEXT,
  judged_at TEXT
) STRICT;
CREATE INDEX review_requests_push ON review_requests (push_seq, seq);
CREATE UNIQUE INDEX review_requests_one_open ON review_requests (push_seq) WHERE verdict IS NULL;
CREATE TRIGGER review_requests_one_verdict BEFORE UPDATE ON review_requests WHEN OLD.verdict IS NOT NULL BEGIN SELECT RAISE(ABORT, 'a verdict is final'); END;
