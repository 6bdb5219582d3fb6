-- What asks for live runs reads no history: `INDEXED BY sessions_live` says so, since the planner takes an index of all runs for as good.
DROP INDEX sessions_live;
CREATE INDEX sessions_live ON sessions (business, instance) WHERE state <> 'ended';
CREATE INDEX sessions_business ON sessions (business);
CREATE INDEX sessions_task ON sessions (business, instance, task);

-- A list begins where its page does, in the order of seq, and passes over nothing that is not asked for.
CREATE INDEX tasks_state ON tasks (business, state);
CREATE INDEX tasks_assignee ON tasks (business, assignee, state) WHERE assignee IS NOT NULL;
CREATE INDEX tasks_creator ON tasks (business, created_by, state) WHERE created_by_kind = 'session';
CREATE INDEX tasks_project ON tasks (business, project, assignee) WHERE project IS NOT NULL;
DROP INDEX trail_kind;
CREATE INDEX trail_kind ON trail (kind) WHERE kind <> 'message.sent';
CREATE INDEX launch_log_code ON launch_log (code) WHERE code IS NOT NULL;

-- seq, the row number, is the last column of every index anyway: to name it only makes the index larger.
DROP INDEX sessions_of;
CREATE INDEX sessions_of ON sessions (business, instance);
DROP INDEX launch_log_event;
CREATE INDEX launch_log_event ON launch_log (event);
DROP INDEX trail_subject;
CREATE INDEX trail_subject ON trail (subject) WHERE subject IS NOT NULL;
DROP INDEX trail_actor;
CREATE INDEX trail_actor ON trail (actor_run) WHERE actor_run IS NOT NULL;
DROP INDEX messages_waiting;
CREATE INDEX messages_waiting ON messages (business, recipient) WHERE state = 'accepted';
DROP INDEX messages_owed;
CREATE INDEX messages_owed ON messages (business) WHERE class = 'REQUEST' AND state <> 'answered' AND state <> 'dead';
DROP INDEX messages_founder;
CREATE INDEX messages_founder ON messages (business) WHERE recipient = 'founder';
DROP INDEX pushes_task;
CREATE INDEX pushes_task ON pushes (task_seq);
DROP INDEX review_requests_push;
CREATE INDEX review_requests_push ON review_requests (push_seq);

-- Usage is summed in slices of seq: no query goes by time first.
DROP INDEX usage_at;
