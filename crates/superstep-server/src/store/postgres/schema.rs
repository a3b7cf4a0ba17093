//! The tables, next to those of the checkpoints.
//!
//! Each row has its object as JSON text in `body`, and beside it the columns that are searched for. `server_queue` has one row
//! for each thread that has a run to do: its head, which is the run that is running, or the one that is due first.
//! So the key allows one run of a thread at a time, and a claim reads as many rows as it takes, however many runs wait behind.

/// Counts the steps that were taken.
pub(super) const TABLE: &str = "server_migrations";

/// Text is compared byte by byte, as SQLite does it.
pub(super) const STEPS: &[&str] = &["
CREATE TABLE IF NOT EXISTS server_assistants (
    assistant_id text COLLATE \"C\" PRIMARY KEY, graph_id text COLLATE \"C\" NOT NULL,
    name text COLLATE \"C\" NOT NULL, created_at bigint NOT NULL, updated_at bigint NOT NULL,
    metadata jsonb, body text NOT NULL
);
CREATE TABLE IF NOT EXISTS server_assistant_versions (
    assistant_id text NOT NULL, version bigint NOT NULL, body text NOT NULL,
    PRIMARY KEY (assistant_id, version)
);
CREATE TABLE IF NOT EXISTS server_threads (
    thread_id text COLLATE \"C\" PRIMARY KEY, n bigint GENERATED ALWAYS AS IDENTITY,
    status text COLLATE \"C\" NOT NULL, created_at bigint NOT NULL, updated_at bigint NOT NULL,
    state_updated_at bigint NOT NULL, metadata jsonb, body text NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX IF NOT EXISTS server_threads_created ON server_threads (created_at, n);
CREATE INDEX IF NOT EXISTS server_threads_metadata ON server_threads USING gin (metadata jsonb_path_ops);
CREATE INDEX IF NOT EXISTS server_threads_unsearchable ON server_threads (thread_id) WHERE metadata IS NULL;
CREATE TABLE IF NOT EXISTS server_runs (
    run_id text COLLATE \"C\" PRIMARY KEY, n bigint GENERATED ALWAYS AS IDENTITY,
    thread_id text COLLATE \"C\" NOT NULL, graph_id text COLLATE \"C\" NOT NULL,
    status text COLLATE \"C\" NOT NULL, worker text, epoch bigint NOT NULL,
    created_at bigint NOT NULL, updated_at bigint NOT NULL, metadata jsonb, body text NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX IF NOT EXISTS server_runs_thread ON server_runs (thread_id, created_at, n);
CREATE INDEX IF NOT EXISTS server_runs_pending ON server_runs (thread_id, created_at, n) WHERE status = 'pending';
CREATE UNIQUE INDEX IF NOT EXISTS server_runs_running ON server_runs (thread_id) WHERE status = 'running';
CREATE TABLE IF NOT EXISTS server_queue (
    thread_id text COLLATE \"C\" PRIMARY KEY, run_id text NOT NULL, graph_id text NOT NULL,
    due_at bigint NOT NULL, n bigint NOT NULL, worker text, token text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX IF NOT EXISTS server_queue_ready ON server_queue (due_at, n) WHERE worker IS NULL;
CREATE INDEX IF NOT EXISTS server_queue_worker ON server_queue (worker) WHERE worker IS NOT NULL;
CREATE TABLE IF NOT EXISTS server_workers (
    worker_id text PRIMARY KEY, started_at timestamptz NOT NULL, beat_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS server_events (
    run_id text COLLATE \"C\" NOT NULL, seq bigint NOT NULL, event text NOT NULL, data text NOT NULL,
    PRIMARY KEY (run_id, seq)
);
CREATE TABLE IF NOT EXISTS server_ends (
    run_id text PRIMARY KEY, ended_at bigint NOT NULL, result text NOT NULL
);
CREATE TABLE IF NOT EXISTS server_sessions (
    thread_id text COLLATE \"C\" PRIMARY KEY, last bigint NOT NULL, updated_at bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS server_session_events (
    thread_id text COLLATE \"C\" NOT NULL, seq bigint NOT NULL, event text NOT NULL, data text NOT NULL,
    PRIMARY KEY (thread_id, seq)
);
CREATE TABLE IF NOT EXISTS server_crons (
    cron_id text COLLATE \"C\" PRIMARY KEY, n bigint GENERATED ALWAYS AS IDENTITY,
    assistant_id text COLLATE \"C\" NOT NULL, thread_id text COLLATE \"C\", enabled text NOT NULL,
    next_run_date bigint, end_time bigint, created_at bigint NOT NULL, updated_at bigint NOT NULL,
    metadata jsonb, body text NOT NULL
);
CREATE INDEX IF NOT EXISTS server_crons_due ON server_crons (next_run_date) WHERE next_run_date IS NOT NULL;
CREATE TABLE IF NOT EXISTS server_webhooks (
    run_id text PRIMARY KEY, ended_at bigint NOT NULL, due_at bigint, body text NOT NULL
);
CREATE INDEX IF NOT EXISTS server_webhooks_due ON server_webhooks (due_at) WHERE due_at IS NOT NULL;
", "
ALTER TABLE server_threads ADD COLUMN IF NOT EXISTS tenant text COLLATE \"C\" NOT NULL
    GENERATED ALWAYS AS (CASE position(':' IN thread_id) WHEN 0 THEN '' ELSE split_part(thread_id, ':', 1) END) STORED;
ALTER TABLE server_assistants ADD COLUMN IF NOT EXISTS tenant text COLLATE \"C\" NOT NULL
    GENERATED ALWAYS AS (CASE position(':' IN assistant_id) WHEN 0 THEN '' ELSE split_part(assistant_id, ':', 1) END) STORED;
ALTER TABLE server_crons ADD COLUMN IF NOT EXISTS tenant text COLLATE \"C\" NOT NULL
    GENERATED ALWAYS AS (CASE position(':' IN cron_id) WHEN 0 THEN '' ELSE split_part(cron_id, ':', 1) END) STORED;
CREATE INDEX IF NOT EXISTS server_threads_tenant ON server_threads (tenant, created_at, n);
CREATE INDEX IF NOT EXISTS server_threads_waiting ON server_threads (tenant, state_updated_at, thread_id)
    WHERE status = 'interrupted';
CREATE TABLE IF NOT EXISTS server_answers (
    thread_id text NOT NULL, at bigint NOT NULL, run_id text NOT NULL, interrupt_id text NOT NULL,
    body text NOT NULL, PRIMARY KEY (thread_id, at, run_id, interrupt_id)
);
CREATE TABLE IF NOT EXISTS server_idempotency (
    key text PRIMARY KEY, fingerprint text NOT NULL, at bigint NOT NULL, made text NOT NULL, result text
);
CREATE INDEX IF NOT EXISTS server_idempotency_at ON server_idempotency (at);
CREATE TABLE IF NOT EXISTS server_api_keys (
    id text PRIMARY KEY, name text NOT NULL, created_at bigint NOT NULL, revoked_at bigint, body text NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS server_api_keys_name ON server_api_keys (name) WHERE revoked_at IS NULL;
", "
ALTER TABLE server_threads ADD COLUMN IF NOT EXISTS wake_at bigint;
CREATE INDEX IF NOT EXISTS server_threads_wake ON server_threads (wake_at) WHERE wake_at IS NOT NULL;
ALTER TABLE server_threads ADD COLUMN IF NOT EXISTS expires boolean NOT NULL DEFAULT false;
CREATE INDEX IF NOT EXISTS server_threads_expire ON server_threads (created_at, n) WHERE expires;
"];
