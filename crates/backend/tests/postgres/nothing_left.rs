//! Of what is removed nothing is left in any table of a database.

use crate::server::{self, server};
use carillon_backend::conformance::nothing_left::{ColumnType, Database, Value, of_a_domain, of_an_account};
use carillon_core::ports::Store;
use carillon_core::ports::store::domains::DOMAIN_PART_ROWS;
use std::fmt::Write;

impl Database for server::Database {
    fn open(&self) -> Box<dyn Store> {
        Box::new(server::Database::open(self))
    }

    fn tables(&self) -> Vec<String> {
        let rows = self.run("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'");
        rows.iter().map(|row| row.get(0)).collect()
    }

    fn nobodys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("schema", "its one row"),
            ("node", "the cell's"),
            ("node_epoch", "the cell's"),
            ("lane", "the cell's"),
            ("event_number", "its one row"),
            ("broadcast_revision", "its one row"),
        ]
    }

    fn columns(&self, table: &str) -> Vec<(String, ColumnType)> {
        let sql = format!(
            "SELECT column_name::text, udt_name::text FROM information_schema.columns
             WHERE table_schema = 'public' AND table_name = '{table}' AND is_generated = 'NEVER' ORDER BY ordinal_position"
        );
        let rows = self.run(&sql);
        let column = |name: String, kind: &str| {
            let kind = match kind {
                "int2" | "int4" | "int8" => ColumnType::Integer,
                "bool" => ColumnType::Bool,
                "text" => ColumnType::Text,
                "bytea" => ColumnType::Bytes,
                "uuid" => ColumnType::Uuid,
                other => panic!("{table}.{name}: a type that the test does not know, {other}"),
            };
            (name, kind)
        };
        rows.iter().map(|row| column(row.get(0), row.get(1))).collect()
    }

    fn count(&self, table: &str) -> i64 {
        self.run(&format!("SELECT count(*) FROM \"{table}\""))[0].get(0)
    }

    fn insert(&self, table: &str, row: &[(String, Value)]) {
        let names: Vec<String> = row.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let values: Vec<String> = row.iter().map(|(_, value)| literal(value)).collect();
        // What it refers to is there in the end, and nothing counts it.
        let sql = format!(
            "SET session_replication_role = replica;
             INSERT INTO \"{table}\" ({}) OVERRIDING SYSTEM VALUE VALUES ({})",
            names.join(", "),
            values.join(", ")
        );
        server().batch(&self.name, &sql);
    }

    fn run(&self, sql: &str) {
        server::Database::run(self, sql);
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Text(text) => format!("'{text}'"),
        Value::Bytes(bytes) => {
            let mut text = "'\\x".to_owned();
            bytes.iter().for_each(|byte| write!(text, "{byte:02x}").expect("a string takes it"));
            text + "'"
        }
        Value::Uuid(number) => format!("'{number:032x}'"),
    }
}

#[test]
fn nothing_is_left_of_a_domain() {
    of_a_domain(&server::Database::new(), DOMAIN_PART_ROWS);
}

#[test]
fn nothing_is_left_of_an_account() {
    assert_eq!(of_an_account(&server::Database::new(), u32::MAX), 1);
}

#[test]
fn a_removal_that_is_interrupted_after_any_part_goes_on() {
    let parts = |removal: fn(&dyn Database, u32) -> u32| removal(&server::Database::new(), 1);
    let (of_account, of_domain) = (parts(of_an_account), parts(of_a_domain));
    // Most tables had a row of theirs.
    assert!(of_account > 10 && of_domain > 20, "{of_account} {of_domain}");
}
