use super::super::Args as Autoscale;
use super::*;
use clap::Parser;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Autoscale,
}

/// What `carillon autoscale simulate` prints; why it does not.
fn printed(line: &str) -> Result<String, String> {
    let words = ["autoscale", "simulate"].into_iter().chain(line.split_whitespace());
    let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    super::super::run(&line.args, &mut out).map_err(|failure| failure.to_string())?;
    Ok(String::from_utf8(out).expect("text"))
}

#[test]
fn programs_are_told_a_list_of_cells() {
    let text = printed("--shape bell --shape top-heavy --target 30..80 --policy all --json").expect("done");
    let rows: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    assert_eq!(rows.len(), 2 * 6 * 5);
    let worst = rows.iter().find(|row| row["shape"] == "top-heavy" && row["target"] == 80).expect("a row");
    assert_eq!(worst["policy"], "consumed-5");
    let keys: Vec<_> = worst.as_object().expect("an object").keys().map(String::as_str).collect();
    let expected = [
        "changes",
        "policy",
        "shape",
        "success_percent",
        "target",
        "throttle_events",
        "unit_hours",
        "writes_lost",
    ];
    assert_eq!(keys, expected);
    assert!((worst["success_percent"].as_f64().expect("a number") - 75.3).abs() < 0.5);
    assert_eq!(
        printed("").map(|text| text.lines().count()),
        Ok(1 + 60),
        "the same is what nothing given means"
    );
}

#[test]
fn pages_and_pictures_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().display();
    printed(&format!("--target 80 --html {at}/page.html --svg {at}")).expect("done");
    let page = std::fs::read_to_string(folder.path().join("page.html")).expect("written");
    assert_eq!(page.matches("<figure>").count(), 4);
    assert!(page.contains("top-heavy at 80 %: refused"));
    let picture = std::fs::read_to_string(folder.path().join("top-heavy-80-granted.svg")).expect("written");
    assert!(picture.starts_with("<svg") && picture.contains("requests-1") && picture.contains("<style>"));
    assert!(printed(&format!("--html {at}/none/page.html")).is_err_and(|why| why.contains("none/page.html")));
}

#[test]
fn the_policy_of_a_settings_file_is_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("autoscaler.toml");
    let rows = |policy: &str, options: &str| -> Result<Vec<Value>, String> {
        std::fs::write(&file, format!("[policy]\n{policy}\n[source]\nkind = \"any\"\n")).expect("written");
        let line = format!("--shape top-heavy --config {} --json {options}", file.display());
        Ok(serde_json::from_str(&printed(&line)?).expect("JSON"))
    };
    let policy = "name = \"requests-1\"\ntarget = 80\nmin = 50\nmax = 1000\ndown = { never = true }";
    let own = rows(policy, "").expect("done");
    let same = printed("--shape top-heavy --target 80 --policy requests-1 --json").expect("done");
    assert_eq!(Value::from(own.clone()), serde_json::from_str::<Value>(&same).expect("JSON"));
    // Each setting counts: a lower maximum loses more, and what is given on the command line is tried instead.
    let bounded = rows(&policy.replace("1000", "100"), "").expect("done");
    assert!(bounded[0]["success_percent"].as_f64() < own[0]["success_percent"].as_f64(), "{bounded:?}");
    let given: Vec<_> = rows(policy, "--target 60,70 --policy demand").expect("done");
    assert_eq!(given.len(), 2);
    assert!(given.iter().all(|row| row["policy"] == "demand"), "{given:?}");
    let why = rows(&policy.replace("min = 50", "min = 2000"), "").expect_err("wrong");
    assert!(why.ends_with("autoscaler.toml: policy.min: 2000 is more than max, 1000"), "{why}");
    assert!(rows(policy, "--max 3").expect_err("wrong").contains("cannot be used with"));
    assert!(rows("mni = 3", "").expect_err("wrong").contains("unknown field `mni`"));
}

#[test]
fn what_cannot_be_is_said_with_its_option() {
    let why = |line: &str| printed(line).expect_err("wrong");
    assert!(why("--policy demnad").contains("\"demnad\" is no policy"));
    assert!(why("--target 0").contains("expected 1 to 100 percent"));
    assert_eq!(why("--min 20 --max 10"), "--start: must be between min and max");
    assert_eq!(why("--min 60"), "--start: must be between min and max");
    assert_eq!(why("--per-unit 0"), "--per-unit: expected more than 0");
    assert!(why("--shape bel").starts_with("--shape bel: expected bell, top-heavy"));
    assert!(why("--csv /none.csv").starts_with("/none.csv: "));
    assert!(why("--seen-demand 30s").starts_with("--seen-demand and --seen-consumed: "));
    assert!(why("--effect 0s").contains("--effect: must be more than 0"));
}
