//! SQLite exports: figures that SQL works out from the operations alone are those of the report's rows.

use std::path::Path;

use crate::common::made::{made, written};
use cuptop::export::TimelineFormat;
use rusqlite::Connection;

fn opened(bytes: &[u8]) -> (tempfile::TempDir, Connection) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("it.sqlite");
    std::fs::write(&path, bytes).expect("a file");
    let db = Connection::open(&path).expect("a database");
    (folder, db)
}

fn one(db: &Connection, sql: &str) -> i64 {
    db.query_row(sql, [], |row| row.get::<_, Option<i64>>(0))
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
        .unwrap_or_default()
}

/// Time between operations of each device, by a running maximum of ends: nothing of cuptop's is asked.
const IDLE: &str = "SELECT sum(max(0, start_ns - before)) FROM (
    SELECT start_ns, coalesce(max(end_ns) OVER (PARTITION BY device ORDER BY start_ns, end_ns, id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns) AS before FROM operations)";

#[test]
fn every_view_answers_and_gaps_are_what_lies_between_operations() {
    let traces = Path::new("tests/data/traces");
    for name in [
        "pageable.json.gz",
        "events.json.gz",
        "graph.json.gz",
        "copies.json.gz",
    ] {
        let trace = crate::common::load(&[traces.join(name)]).trace;
        let (_folder, db) = opened(&written(TimelineFormat::Sqlite, &trace));
        assert_eq!(
            one(&db, "SELECT sum(duration_ns) FROM gap_pieces"),
            one(&db, IDLE),
            "{name}"
        );
        assert_eq!(
            one(&db, "SELECT sum(idle_ns) FROM devices"),
            one(&db, IDLE),
            "{name}"
        );
        let kernels = "SELECT count(*) FROM operations WHERE kind = 'kernel'";
        assert_eq!(
            one(&db, kernels),
            one(&db, "SELECT sum(kernels) FROM devices"),
            "{name}"
        );
        assert_eq!(
            one(&db, "SELECT count(*) FROM findings WHERE title IS NULL"),
            0
        );
        let mut views = db
            .prepare("SELECT name FROM sqlite_master WHERE type = 'view'")
            .expect("SQL");
        let views: Vec<String> = views
            .query_map([], |row| row.get(0))
            .expect("SQL")
            .map(|it| it.expect("a name"))
            .collect();
        assert_eq!(views.len(), 15);
        for view in views {
            one(&db, &format!("SELECT count(*) FROM {view}"));
        }
    }
}

#[test]
fn operations_lead_to_their_calls() {
    let (_folder, db) = opened(&written(TimelineFormat::Sqlite, &made()));
    assert_eq!(one(&db, "SELECT count(*) FROM operations"), 6);
    let wrong = "SELECT count(*) FROM operations o JOIN calls c ON c.id = o.call_id WHERE c.correlation != o.correlation";
    assert_eq!(one(&db, wrong), 0);
    assert!(one(&db, "SELECT count(call_id) FROM operations") > 0);
    assert_eq!(one(&db, "SELECT value FROM about WHERE key = 'schema'"), 2);
}
