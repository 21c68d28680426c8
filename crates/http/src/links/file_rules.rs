//! What has to be in the files by which telephones learn which app opens the links of a host. Apple and Google say nothing when one is wrong:
//! the links open in a browser.

use carillon_core::model::LinkFile;
use serde_json::{Map, Value};

/// Checks a file; else says what is wrong with it.
///
/// # Errors
/// What is wrong, naming the member.
pub fn check(file: LinkFile, bytes: &[u8]) -> Result<(), String> {
    if bytes.len() > LinkFile::BYTES_MAX {
        return Err(format!("it has {} bytes; no more than {} are read", bytes.len(), LinkFile::BYTES_MAX));
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON: {error}"))?;
    match file {
        LinkFile::Apple => apple(&value),
        LinkFile::Android => android(&value),
    }
}

fn apple(value: &Value) -> Result<(), String> {
    let members = value.as_object().ok_or("it has to be an object")?;
    let known = ["applinks", "webcredentials", "appclips", "activitycontinuation"];
    if !known.iter().any(|name| members.contains_key(*name)) {
        return Err(format!(
            "it has none of the members {}",
            known.map(|name| format!("`{name}`")).join(", ")
        ));
    }
    if let Some(links) = members.get("applinks") {
        let details = links.get("details").and_then(Value::as_array);
        let details = details.ok_or("`applinks.details` has to be a list")?;
        for (n, detail) in details.iter().enumerate() {
            let place = format!("applinks.details[{n}]");
            let detail = detail.as_object().ok_or_else(|| format!("`{place}` has to be an object"))?;
            apple_detail(&place, detail)?;
        }
    }
    for name in ["webcredentials", "appclips"] {
        if let Some(value) = members.get(name) {
            let apps = value.get("apps").and_then(Value::as_array);
            let apps = apps.ok_or_else(|| format!("`{name}.apps` has to be a list"))?;
            apps.iter().try_for_each(|app| app_id(&format!("{name}.apps"), app))?;
        }
    }
    Ok(())
}

fn apple_detail(place: &str, detail: &Map<String, Value>) -> Result<(), String> {
    match (detail.get("appIDs"), detail.get("appID")) {
        (Some(Value::Array(ids)), _) if !ids.is_empty() => {
            ids.iter().try_for_each(|id| app_id(&format!("{place}.appIDs"), id))?;
        }
        (None, Some(id)) => app_id(&format!("{place}.appID"), id)?,
        _ => return Err(format!("`{place}` needs `appIDs`, a list of at least one")),
    }
    for name in ["components", "paths"] {
        if detail.get(name).is_some_and(|value| !value.is_array()) {
            return Err(format!("`{place}.{name}` has to be a list"));
        }
    }
    Ok(())
}

/// `TEAMID1234.com.example.app`
fn app_id(place: &str, id: &Value) -> Result<(), String> {
    let is_id = id.as_str().and_then(|id| id.split_once('.')).is_some_and(|(team, bundle)| {
        team.len() == 10 && team.bytes().all(|c| c.is_ascii_alphanumeric()) && !bundle.is_empty()
    });
    if is_id {
        Ok(())
    } else {
        Err(format!("`{place}` has {id}, which is not an app id such as \"ABCDE12345.com.example.app\""))
    }
}

fn android(value: &Value) -> Result<(), String> {
    let statements = value.as_array().ok_or("it has to be a list of statements")?;
    for (n, statement) in statements.iter().enumerate() {
        let relation = statement.get("relation").and_then(Value::as_array);
        if relation.is_none_or(|all| all.is_empty() || !all.iter().all(Value::is_string)) {
            return Err(format!("`[{n}].relation` has to be a list of texts"));
        }
        let target = statement.get("target").and_then(Value::as_object);
        let target = target.ok_or_else(|| format!("`[{n}].target` has to be an object"))?;
        android_target(&format!("[{n}].target"), target)?;
    }
    Ok(())
}

fn android_target(place: &str, target: &Map<String, Value>) -> Result<(), String> {
    match target.get("namespace").and_then(Value::as_str) {
        Some("web") if target.get("site").is_some_and(Value::is_string) => Ok(()),
        Some("web") => Err(format!("`{place}.site` has to be a text")),
        Some("android_app") => {
            if target.get("package_name").and_then(Value::as_str).is_none_or(str::is_empty) {
                return Err(format!("`{place}.package_name` has to be the name of a package"));
            }
            let prints = target.get("sha256_cert_fingerprints").and_then(Value::as_array);
            let prints = prints.filter(|all| !all.is_empty());
            let prints =
                prints.ok_or_else(|| format!("`{place}.sha256_cert_fingerprints` has to be a list"))?;
            match prints.iter().find(|print| !print.as_str().is_some_and(is_fingerprint)) {
                Some(wrong) => Err(format!(
                    "`{place}.sha256_cert_fingerprints` has {wrong}, which is not 32 pairs of hexadecimal digits with colons between them"
                )),
                None => Ok(()),
            }
        }
        _ => Err(format!("`{place}.namespace` has to be \"android_app\" or \"web\"")),
    }
}

fn is_fingerprint(text: &str) -> bool {
    let pairs: Vec<&str> = text.split(':').collect();
    pairs.len() == 32
        && pairs.iter().all(|pair| pair.len() == 2 && pair.bytes().all(|c| c.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_that_telephones_read_are_taken() {
        let apple = json!({"applinks": {"details": [{"appIDs": ["ABCDE12345.com.example.app"], "components": [{"/": "/*"}]}]}});
        assert_eq!(check(LinkFile::Apple, apple.to_string().as_bytes()), Ok(()));
        let older = json!({"applinks": {"apps": [], "details": [{"appID": "ABCDE12345.com.example.app", "paths": ["*"]}]}});
        assert_eq!(check(LinkFile::Apple, older.to_string().as_bytes()), Ok(()));
        let print = vec!["AB"; 32].join(":");
        let android = json!([{
            "relation": ["delegate_permission/common.handle_all_urls"],
            "target": {"namespace": "android_app", "package_name": "com.example", "sha256_cert_fingerprints": [print]},
        }]);
        assert_eq!(check(LinkFile::Android, android.to_string().as_bytes()), Ok(()));
    }

    #[test]
    fn others_are_refused_with_the_member_that_is_wrong() {
        for (file, text, named) in [
            (LinkFile::Apple, json!([]), "object"),
            (LinkFile::Apple, json!({}), "`applinks`"),
            (LinkFile::Apple, json!({"applinks": {}}), "`applinks.details`"),
            (LinkFile::Apple, json!({"applinks": {"details": [{}]}}), "`applinks.details[0]`"),
            (LinkFile::Apple, json!({"applinks": {"details": [{"appIDs": ["com.example"]}]}}), "appIDs"),
            (
                LinkFile::Apple,
                json!({"applinks": {"details": [{"appID": "ABCDE12345.a", "paths": "*"}]}}),
                "paths",
            ),
            (LinkFile::Apple, json!({"webcredentials": {"apps": [1]}}), "webcredentials.apps"),
            (LinkFile::Android, json!({}), "list"),
            (LinkFile::Android, json!([{}]), "`[0].relation`"),
            (LinkFile::Android, json!([{"relation": ["a"]}]), "`[0].target`"),
            (LinkFile::Android, json!([{"relation": ["a"], "target": {"namespace": "ios"}}]), "namespace"),
            (
                LinkFile::Android,
                json!([{"relation": ["a"], "target": {"namespace": "android_app", "package_name": "a", "sha256_cert_fingerprints": ["AB"]}}]),
                "fingerprints",
            ),
        ] {
            let why = check(file, text.to_string().as_bytes()).expect_err("it is wrong");
            assert!(why.contains(named), "{why} names {named}");
        }
        assert!(check(LinkFile::Apple, &vec![b' '; LinkFile::BYTES_MAX + 1]).is_err());
        assert!(check(LinkFile::Android, b"not json").is_err());
    }
}
