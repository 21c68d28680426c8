//! Imports against a node that says what it is told to.

use crate::cli::tests::FakeNode;
use serde_json::{Value, json};

/// What the node says of a chunk.
fn progress(imported: u64, errors: &Value) -> String {
    let failed = errors.as_array().map_or(0, Vec::len);
    json!({"lines": 0, "imported": imported, "failed": failed, "errors": errors, "done": true}).to_string()
}

fn import(node: &FakeNode, file: &str, options: &[&str]) -> (String, Result<(), (u8, String)>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("accounts.csv");
    std::fs::write(&path, file).expect("written");
    let path = path.display().to_string();
    let args: Vec<&str> = ["account", "import", &path].iter().chain(options).copied().collect();
    let (printed, done) = node.run(&args);
    (printed, done.map_err(|(code, why)| (code, why.replace(&path, "FILE"))))
}

#[test]
fn a_file_goes_in_chunks_and_the_answers_are_added_up() {
    let chunk = "{\"lines\":256,\"imported\":256,\"failed\":0,\"done\":false}\n".to_owned();
    let node = FakeNode::new(vec![
        (200, "{}".to_owned()),
        (200, chunk + &progress(1000, &json!([]))),
        (200, progress(1, &json!([]))),
    ]);
    let lines: String = (0..1001).map(|i| format!("u{i}@x,p{i}\n")).collect();
    let (printed, done) = import(&node, &format!("jid,password\n{lines}"), &[]);
    assert_eq!((printed.as_str(), done), ("1001 imported, 0 failed\n", Ok(())));
    let asked = node.asked();
    assert_eq!((asked[1].1.lines().count(), asked[2].0.as_str()), (1000, "POST /v1/admin/accounts/import"));
    assert_eq!(asked[2].1, "{\"jid\":\"u1000@x\",\"password\":\"p1000\"}\n");
}

#[test]
fn failures_are_told_by_the_lines_of_the_file() {
    let errors = json!([{"line": 2, "code": "invalid-jid", "detail": "no JID"}]);
    let node = FakeNode::new(vec![(200, "{}".to_owned()), (200, progress(2, &errors))]);
    let (printed, done) = import(&node, "jid,password\na@x,p\n\nbad line\n@@,p\nb@x,p\n", &["--json"]);
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(
        printed,
        json!({
            "imported": 2,
            "failed": 2,
            "errors": [
                {"line": 4, "detail": "1 fields, but the file has 2"},
                {"line": 5, "detail": "no JID"},
            ],
        })
    );
    assert_eq!(done, Err((1, "2 lines of FILE were not imported".to_owned())));
    node.asked();
}

#[test]
fn failures_come_in_the_order_of_their_lines_whoever_finds_them() {
    let errors =
        json!([{"line": 1, "detail": "the node says no"}, {"line": 2, "detail": "the node says no"}]);
    let node = FakeNode::new(vec![(200, "{}".to_owned()), (200, progress(1, &errors))]);
    let (printed, _) = import(&node, "a@x,p\nbad\nb@x,p\n,p\nc@x,p\n", &["--json"]);
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    let lines: Vec<_> =
        printed["errors"].as_array().expect("errors").iter().map(|e| e["line"].as_u64()).collect();
    assert_eq!(lines, [1, 2, 3, 4].map(Some));
    node.asked();
}

#[test]
fn a_node_that_ends_in_the_middle_is_told() {
    let cut = "{\"lines\":256,\"imported\":256,\"failed\":0,\"done\":false}\n".to_owned();
    let node = FakeNode::new(vec![(200, "{}".to_owned()), (200, cut)]);
    let (printed, done) = import(&node, "jid,password\na@x,p\n", &[]);
    assert_eq!(printed, "0 imported, 0 failed\n");
    assert_eq!(done, Err((3, "the node ended in the middle: run the import again".to_owned())));
    node.asked();
}

#[test]
fn a_file_that_cannot_be_read_is_told() {
    let node = FakeNode::new(Vec::new());
    let columns = "jid,password or jid,iterations,salt,stored_key_sha256,server_key_sha256";
    assert_eq!(
        import(&node, "a,p\n", &[]),
        (
            String::new(),
            Err((2, format!("FILE: line 1 is neither an account nor a list of columns: {columns}")))
        )
    );
    assert_eq!(
        node.run(&["account", "import", "/no/such/file"]).1,
        Err((2, "/no/such/file: No such file or directory (os error 2)".to_owned()))
    );
    node.asked();
}
