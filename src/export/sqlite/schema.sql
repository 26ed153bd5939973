-- A timeline as cuptop exports it to SQLite, version 1. Times are ns on the timeline's clock; sizes are bytes.
-- Ask the views (plural names): they hold the words that the tables hold once.

-- What this is: cuptop, schema, title, source, simulated (0 or 1), lost_records, origin_ns (when the first record began).
CREATE TABLE about (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE name (id INTEGER PRIMARY KEY, text TEXT NOT NULL);

-- A kernel, copy or memset. `kind`: kernel, h2d, d2h, d2d, p2p, copy (any other), memset. `call_id`: what launched it, where known.
CREATE TABLE operation (
    id INTEGER PRIMARY KEY, process INTEGER, pid INTEGER, device INTEGER, context INTEGER, stream INTEGER, kind TEXT,
    name_id INTEGER, start_ns INTEGER, end_ns INTEGER, bytes INTEGER, memory_from TEXT, memory_to TEXT, grid TEXT, block TEXT,
    registers INTEGER, shared_bytes INTEGER, graph INTEGER, correlation INTEGER, call_id INTEGER, graph_node INTEGER);

-- A node of a CUDA graph that ran, by the id that `operation` has. `source`: the line that asked for it, and which of several it is.
-- `stack_id`: its frames in `frame`; null where nobody saw the graph being captured.
CREATE TABLE graph_node (
    process INTEGER, node INTEGER, source TEXT, file TEXT, line INTEGER, function TEXT, number INTEGER, of_line INTEGER,
    round INTEGER, rounds INTEGER, stack_id INTEGER, PRIMARY KEY (process, node)) WITHOUT ROWID;

-- A launch by its correlation id: the line of its own thread, and its frames in `frame`; only where lines of launches were read.
CREATE TABLE launch (
    process INTEGER, correlation INTEGER, source TEXT, file TEXT, line INTEGER, function TEXT, stack_id INTEGER,
    PRIMARY KEY (process, correlation)) WITHOUT ROWID;

-- A call of the CUDA API. `result`: what it returned, 0 for success.
CREATE TABLE call (
    id INTEGER PRIMARY KEY, process INTEGER, pid INTEGER, thread INTEGER, name_id INTEGER, start_ns INTEGER, end_ns INTEGER,
    result INTEGER, correlation INTEGER);

-- A range that the program or its profiler marked: NVTX, framework operations, Python functions, passes of a scenario.
CREATE TABLE range (
    id INTEGER PRIMARY KEY, process INTEGER, pid INTEGER, thread INTEGER, kind TEXT, name_id INTEGER, start_ns INTEGER, end_ns INTEGER);

-- A piece of a stretch in which a device ran nothing, with one cause. `gap` counts the stretches of all devices; its pieces sum to it.
-- `idle_group`: the legend's. `culprit`: the call, range or stream to blame. `certainty`: fact, likely or unknown.
CREATE TABLE gap_piece (
    gap INTEGER, device INTEGER, start_ns INTEGER, end_ns INTEGER, cause TEXT, idle_group TEXT, culprit_id INTEGER, certainty TEXT,
    next_operation INTEGER);

-- A step of a process, numbered from 1. `is_steady`: not warm-up, and seen to its end.
CREATE TABLE step (process INTEGER, pid INTEGER, number INTEGER, start_ns INTEGER, end_ns INTEGER, is_steady INTEGER, shown_by TEXT);

-- When a thread was seen on which stack, and the stacks: `depth` 0 is the innermost frame.
CREATE TABLE sample (process INTEGER, pid INTEGER, thread INTEGER, time_ns INTEGER, stack_id INTEGER, is_running INTEGER);
CREATE TABLE frame (stack_id INTEGER, depth INTEGER, function TEXT, file TEXT, line INTEGER, PRIMARY KEY (stack_id, depth)) WITHOUT ROWID;

-- What a GPU's counters and sensors said of a window; names and units as in docs/REPORT.md.
CREATE TABLE hardware (device INTEGER, start_ns INTEGER, end_ns INTEGER, metric TEXT, unit TEXT, value REAL, held_down TEXT);

-- What the warps of a kernel were seen waiting for, under NVIDIA's names (`--stalls on`).
CREATE TABLE stalls (kernel TEXT, reason TEXT, samples INTEGER);

-- The report's own rows. Columns are the fields of `report --json` by name; those inside an object are joined by `_`.
CREATE TABLE devices (
    device INTEGER, name TEXT, ops INTEGER, kernels INTEGER, memsets INTEGER, span_ns INTEGER, busy_ns INTEGER, idle_ns INTEGER,
    compute_ns INTEGER, copy_ns INTEGER, overlap_ns INTEGER);
CREATE TABLE verdicts (device INTEGER, bound_by TEXT, share REAL, span_ns INTEGER, steps INTEGER, text TEXT);
CREATE TABLE findings (
    rule TEXT, severity TEXT, title TEXT, advice TEXT, count INTEGER, edit TEXT, saving_ns INTEGER, bound_ns INTEGER,
    predicted_per TEXT, predicted_measured_ns INTEGER, predicted_predicted_ns INTEGER, predicted_low_ns INTEGER, predicted_high_ns INTEGER);
CREATE TABLE ranks (
    rank INTEGER, name TEXT, host TEXT, process INTEGER, device INTEGER, offset_ns INTEGER, drift_ppm REAL, residual_ns INTEGER,
    busy_ns INTEGER, idle_ns INTEGER, transfer_ns INTEGER, wait_ns INTEGER, exposed_wait_ns INTEGER, wait_share REAL);

CREATE VIEW operations AS
    SELECT o.id, process, pid, device, context, stream, kind, n.text AS name, start_ns, end_ns, end_ns - start_ns AS duration_ns, bytes,
        round(1.0 * bytes / nullif(end_ns - start_ns, 0), 4) AS gb_per_s, memory_from, memory_to, grid, block, registers, shared_bytes,
        graph, correlation, call_id, graph_node,
        coalesce((SELECT source FROM graph_node g WHERE g.process = o.process AND g.node = o.graph_node),
            (SELECT source FROM launch l WHERE l.process = o.process AND l.correlation = o.correlation)) AS source
    FROM operation o LEFT JOIN name n ON n.id = name_id;
CREATE VIEW calls AS
    SELECT c.id, process, pid, thread, n.text AS name, start_ns, end_ns, end_ns - start_ns AS duration_ns, result, correlation
    FROM call c LEFT JOIN name n ON n.id = name_id;
CREATE VIEW ranges AS
    SELECT r.id, process, pid, thread, kind, n.text AS name, start_ns, end_ns, end_ns - start_ns AS duration_ns
    FROM range r LEFT JOIN name n ON n.id = name_id;
CREATE VIEW gap_pieces AS
    SELECT gap, device, start_ns, end_ns, end_ns - start_ns AS duration_ns, cause, idle_group, n.text AS culprit, certainty, next_operation
    FROM gap_piece LEFT JOIN name n ON n.id = culprit_id;
CREATE VIEW steps AS
    SELECT process, pid, number, start_ns, end_ns, end_ns - start_ns AS duration_ns, is_steady, shown_by FROM step;

-- 1. Where did the GPU's time go?
CREATE VIEW top_kernels AS
    SELECT name, count(*) AS launches, sum(duration_ns) AS total_ns, round(avg(duration_ns)) AS mean_ns, min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns, 1.0 * sum(duration_ns) / sum(sum(duration_ns)) OVER () AS share
    FROM operations WHERE kind = 'kernel' GROUP BY name ORDER BY total_ns DESC;
-- 2. How much did each stream do? Operations of one stream can overlap (graphs), so that this is a sum, not the time it was busy.
CREATE VIEW time_by_stream AS
    SELECT device, process, stream, count(*) AS operations, sum(duration_ns) AS total_ns, min(start_ns) AS first_ns, max(end_ns) AS last_ns
    FROM operations GROUP BY device, process, stream ORDER BY total_ns DESC;
-- 3. Why was the GPU idle?
CREATE VIEW idle_by_cause AS
    SELECT device, cause, idle_group, culprit, certainty, count(*) AS pieces, sum(duration_ns) AS total_ns,
        1.0 * sum(duration_ns) / sum(sum(duration_ns)) OVER (PARTITION BY device) AS share
    FROM gap_pieces GROUP BY device, cause, idle_group, culprit, certainty ORDER BY device, total_ns DESC;
-- 4. Where are the longest gaps?
CREATE VIEW longest_gaps AS
    SELECT g.gap, g.device, min(g.start_ns) AS start_ns, max(g.end_ns) AS end_ns, sum(g.duration_ns) AS duration_ns,
        (SELECT cause FROM gap_pieces p WHERE p.gap = g.gap ORDER BY p.duration_ns DESC LIMIT 1) AS main_cause, o.name AS next_operation
    FROM gap_pieces g LEFT JOIN operations o ON o.id = g.next_operation GROUP BY g.gap ORDER BY duration_ns DESC;
-- 5. Which steps are slow?
CREATE VIEW slowest_steps AS
    SELECT *, 1.0 * duration_ns / avg(duration_ns) OVER (PARTITION BY process) AS against_mean FROM steps WHERE is_steady
    ORDER BY duration_ns DESC;
-- 6. What was copied, how fast?
CREATE VIEW copies_by_direction AS
    SELECT device, kind, memory_from, memory_to, count(*) AS copies, sum(bytes) AS bytes, sum(duration_ns) AS total_ns,
        round(1.0 * sum(bytes) / nullif(sum(duration_ns), 0), 4) AS gb_per_s
    FROM operations WHERE kind NOT IN ('kernel', 'memset') GROUP BY device, kind, memory_from, memory_to ORDER BY total_ns DESC;
-- 7. What did the CPU call?
CREATE VIEW top_calls AS
    SELECT name, count(*) AS calls, sum(duration_ns) AS total_ns, round(avg(duration_ns)) AS mean_ns, max(duration_ns) AS max_ns,
        sum(result != 0) AS failed
    FROM calls GROUP BY name ORDER BY total_ns DESC;
-- 8. How long did an operation wait after its call?
CREATE VIEW launch_delays AS
    SELECT o.id AS operation, o.device, o.name, c.name AS call, o.start_ns - c.start_ns AS delay_ns
    FROM operations o JOIN calls c ON c.id = o.call_id ORDER BY delay_ns DESC;
-- 9. Which operations ran in which step?
CREATE VIEW operations_by_step AS
    SELECT s.process, s.number AS step, o.kind, o.name, count(*) AS operations, sum(o.duration_ns) AS total_ns
    FROM steps s JOIN operations o ON o.process = s.process AND o.start_ns >= s.start_ns AND o.start_ns < s.end_ns
    GROUP BY s.process, s.number, o.kind, o.name ORDER BY s.process, s.number, total_ns DESC;
-- 10. Which functions were the threads seen in?
CREATE VIEW hot_functions AS
    SELECT process, thread, function, file, count(*) AS samples, sum(depth = 0) AS innermost, sum(is_running) AS running
    FROM sample JOIN frame USING (stack_id) GROUP BY process, thread, function, file ORDER BY samples DESC;
