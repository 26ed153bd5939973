//! A database that may lack tables and columns: every release of Nsight Systems has others.

use std::cell::OnceCell;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row, Statement};
use rustc_hash::FxHashMap;

/// An export, opened for reading only.
pub(super) struct Tables {
    connection: Connection,
    /// Columns by table.
    columns: FxHashMap<String, Vec<String>>,
    /// Rows of strings by their ids, where the table has no key by which SQLite finds them.
    strings: OnceCell<Option<FxHashMap<i64, i64>>>,
}

impl Tables {
    /// Opens the file, without a lock and without ever writing beside it.
    pub(super) fn open(path: &Path) -> rusqlite::Result<Tables> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(uri(path), flags)?;
        // The file may come from anywhere: code that it defines must not run.
        connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;")?;
        let mut columns: FxHashMap<String, Vec<String>> = FxHashMap::default();
        {
            // Real tables only: a view could be a query that never ends.
            let mut list = connection.prepare(
                "SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c \
                 WHERE t.type = 'table' AND t.schema = 'main'",
            )?;
            let mut rows = list.query([])?;
            while let Some(row) = rows.next()? {
                let (table, column) = (text(row, 0), text(row, 1));
                columns.entry(table).or_default().push(column);
            }
        }
        Ok(Tables {
            connection,
            columns,
            strings: OnceCell::new(),
        })
    }

    pub(super) fn has(&self, table: &str) -> bool {
        self.columns.contains_key(table)
    }

    fn has_column(&self, table: &str, column: &str) -> bool {
        self.columns
            .get(table)
            .is_some_and(|columns| columns.iter().any(|c| c == column))
    }

    /// A query for these columns of a table, with NULL for missing columns. `None` when there is no such table, or when
    /// it lacks the first column, without which a row means nothing. `order` stands behind it.
    pub(super) fn select(
        &self,
        table: &str,
        columns: &[&str],
        order: &str,
    ) -> rusqlite::Result<Option<Statement<'_>>> {
        if !columns.first().is_some_and(|c| self.has_column(table, c)) {
            return Ok(None);
        }
        let list: Vec<String> = columns
            .iter()
            .map(|column| match self.has_column(table, column) {
                true => format!("\"{column}\""),
                false => "NULL".to_owned(),
            })
            .collect();
        let query = format!("SELECT {} FROM \"{table}\"{order}", list.join(", "));
        self.connection.prepare(&query).map(Some)
    }

    /// Calls `take` with every row of a table; see [`Tables::select`].
    pub(super) fn each(
        &self,
        table: &str,
        columns: &[&str],
        take: impl FnMut(&Row<'_>),
    ) -> rusqlite::Result<()> {
        self.each_in(table, columns, "", take)
    }

    /// Likewise in this order.
    pub(super) fn each_in(
        &self,
        table: &str,
        columns: &[&str],
        order: &str,
        mut take: impl FnMut(&Row<'_>),
    ) -> rusqlite::Result<()> {
        if let Some(mut query) = self.select(table, columns, order)? {
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                take(row);
            }
        }
        Ok(())
    }

    /// A table of `id` and `name`, such as those of enumerations.
    pub(super) fn names(&self, table: &str) -> rusqlite::Result<FxHashMap<i64, String>> {
        let mut names = FxHashMap::default();
        self.each(table, &["id", "name"], |row| {
            if let Some(id) = int(row, 0) {
                names.insert(id, text(row, 1));
            }
        })?;
        Ok(names)
    }

    /// The string with this id. The table may hold millions, of which few are needed.
    pub(super) fn string(&self, id: i64) -> rusqlite::Result<Option<String>> {
        if !self.has_column("StringIds", "id") || !self.has_column("StringIds", "value") {
            return Ok(None);
        }
        let (by, key) = match self.strings.get_or_init(|| self.rows_of_strings().ok()?) {
            None => ("id", Some(&id)),
            Some(rows) => ("rowid", rows.get(&id)),
        };
        let Some(key) = key else {
            return Ok(None);
        };
        let query = format!("SELECT value FROM StringIds WHERE {by} = ?1");
        let mut query = self.connection.prepare_cached(&query)?;
        let mut rows = query.query([key])?;
        Ok(rows.next()?.map(|row| text(row, 0)))
    }

    fn rows_of_strings(&self) -> rusqlite::Result<Option<FxHashMap<i64, i64>>> {
        let plan = "EXPLAIN QUERY PLAN SELECT value FROM StringIds WHERE id = ?1";
        let plan = self
            .connection
            .query_row(plan, [0], |row| Ok(text(row, 3)))?;
        if !plan.starts_with("SCAN") {
            return Ok(None);
        }
        let mut found = FxHashMap::default();
        // A table that has no numbers of rows either has no strings.
        if let Ok(mut query) = self.connection.prepare("SELECT id, rowid FROM StringIds") {
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                if let (Some(id), Some(at)) = (int(row, 0), int(row, 1)) {
                    found.entry(id).or_insert(at);
                }
            }
        }
        Ok(Some(found))
    }

    /// About how many rows a table has: exact when none was ever deleted.
    pub(super) fn rows(&self, table: &str) -> u64 {
        if !self.has(table) {
            return 0;
        }
        let query = format!("SELECT max(rowid) FROM \"{table}\"");
        self.connection
            .query_row(&query, [], |row| Ok(int(row, 0)))
            .ok()
            .flatten()
            .and_then(|n| u64::try_from(n).ok())
            .unwrap_or(0)
    }
}

/// An integer, whatever type the column claims to have.
pub(super) fn int(row: &Row<'_>, index: usize) -> Option<i64> {
    match row.get_ref(index).ok()? {
        ValueRef::Integer(value) => Some(value),
        ValueRef::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
        ValueRef::Real(value) if value.fract() == 0.0 && value.abs() < 9e15 => Some(value as i64),
        _ => None,
    }
}

/// An integer of 32 bits; 0 for anything else.
pub(super) fn small(row: &Row<'_>, index: usize) -> u32 {
    int(row, index)
        .and_then(|value| u32::try_from(value).ok())
        .unwrap_or(0)
}

/// A size or an address; 0 for anything else. Addresses use all 64 bits.
pub(super) fn large(row: &Row<'_>, index: usize) -> u64 {
    int(row, index).map_or(0, i64::cast_unsigned)
}

/// A text; empty for anything else.
pub(super) fn text(row: &Row<'_>, index: usize) -> String {
    match row.get_ref(index) {
        Ok(ValueRef::Text(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

/// The path as a URI that promises that nobody else writes to the file.
fn uri(path: &Path) -> String {
    use std::fmt::Write as _;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = String::from("file:");
    for &byte in std::os::unix::ffi::OsStrExt::as_bytes(absolute.as_os_str()) {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri.push_str("?mode=ro&immutable=1");
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looked for one by one in all of them, 60,000 strings took 60 s.
    #[test]
    fn strings_without_a_key_are_found_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        for (at, (table, is_known)) in [
            ("(id INTEGER, value TEXT)", true),
            (
                "(id TEXT, value TEXT, PRIMARY KEY (value)) WITHOUT ROWID",
                false,
            ),
            ("(id INTEGER PRIMARY KEY, value TEXT)", true),
        ]
        .into_iter()
        .enumerate()
        {
            let sql = format!(
                "CREATE TABLE StringIds {table};
                 WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 59999)
                 INSERT INTO StringIds SELECT i, 'name ' || i FROM n;"
            );
            let path = folder.path().join(format!("{at}.sqlite"));
            let made = Connection::open(&path).and_then(|it| it.execute_batch(&sql));
            made.expect("a file");
            let tables = Tables::open(&path).expect("an export");
            let begun = std::time::Instant::now();
            for id in 0..60_000 {
                let expected = is_known.then(|| format!("name {id}"));
                assert_eq!(tables.string(id).expect("readable"), expected, "{table}");
            }
            assert!(
                begun.elapsed().as_secs() < 10,
                "{table}: {:?}",
                begun.elapsed()
            );
        }
    }
}
