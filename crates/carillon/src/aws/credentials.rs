//! Whose requests they are: the environment, a profile's file, a web identity (IRSA), a container's credentials (ECS, EKS), the
//! instance's (IMDSv2), in this order, as the SDKs of AWS look for them.

use crate::web::{Web, secret, segment};
use aws_credential_types::Credentials;
use carillon_core::model::UnixMs;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where credentials come from, and those that are used now.
#[derive(Debug)]
pub(super) struct Chain {
    place: Place,
    current: Option<(Credentials, Duration)>,
}

#[derive(Debug)]
enum Place {
    /// They do not end.
    Fixed(Credentials),
    /// A token in a file is exchanged.
    WebIdentity { token_file: PathBuf, role: String, endpoint: String },
    /// A URL of this container, and a file with what to say there.
    Container { url: String, token_file: Option<PathBuf>, token: Option<String> },
    /// This instance's metadata.
    Instance { endpoint: String },
}

/// Credentials are renewed so long before they end.
const EARLY: Duration = Duration::from_secs(300);
/// Those that do not say when they end are used so long.
const LASTING: Duration = Duration::from_secs(900);

impl Chain {
    /// The first place that this process' environment names; else this instance.
    pub(super) fn new() -> Result<Chain, String> {
        let place = Place::find(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()))?;
        Ok(Chain { place, current: None })
    }

    /// Those that are used now have ended, whatever was said of them.
    pub(super) fn forget(&mut self) {
        self.current = None;
    }

    /// Credentials that are valid now.
    pub(super) fn credentials(&mut self, web: &Web, now: Duration) -> Result<Credentials, String> {
        if let Place::Fixed(credentials) = &self.place {
            return Ok(credentials.clone());
        }
        if let Some((credentials, _)) = self.current.as_ref().filter(|(_, until)| now + EARLY < *until) {
            return Ok(credentials.clone());
        }
        let fetched = self.place.fetch(web, now).map_err(|why| format!("credentials of AWS: {why}"))?;
        Ok(self.current.insert(fetched).0.clone())
    }
}

impl Place {
    fn find(variable: &dyn Fn(&str) -> Option<String>) -> Result<Place, String> {
        if let (Some(id), Some(key)) = (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")) {
            return Ok(Place::Fixed(Credentials::new(
                id,
                key,
                variable("AWS_SESSION_TOKEN"),
                None,
                "environment",
            )));
        }
        let home = variable("HOME").map(|home| Path::new(&home).join(".aws/credentials"));
        let file = variable("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from).or(home);
        if let Some(text) = file.and_then(|file| std::fs::read_to_string(file).ok()) {
            let profile = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
            if let Some(credentials) = of_profile(&text, &profile) {
                return Ok(Place::Fixed(credentials));
            }
        }
        if let (Some(file), Some(role)) = (variable("AWS_WEB_IDENTITY_TOKEN_FILE"), variable("AWS_ROLE_ARN"))
        {
            let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
            let region = region.ok_or("AWS_REGION is not set, and a web identity needs it")?;
            let endpoint = variable("AWS_ENDPOINT_URL_STS")
                .unwrap_or_else(|| format!("https://sts.{region}.amazonaws.com"));
            return Ok(Place::WebIdentity { token_file: file.into(), role, endpoint });
        }
        let relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
            .map(|path| format!("http://169.254.170.2{path}"));
        if let Some(url) = relative.or_else(|| variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
            let token_file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").map(PathBuf::from);
            return Ok(Place::Container {
                url,
                token_file,
                token: variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
            });
        }
        let endpoint = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        Ok(Place::Instance { endpoint: endpoint.unwrap_or_else(|| "http://169.254.169.254".to_owned()) })
    }

    fn fetch(&self, web: &Web, now: Duration) -> Result<(Credentials, Duration), String> {
        match self {
            Place::Fixed(credentials) => Ok((credentials.clone(), Duration::MAX)),
            Place::WebIdentity { token_file, role, endpoint } => {
                let token = secret(token_file)?;
                let form = format!(
                    "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleSessionName=carillon&RoleArn={}&\
                     WebIdentityToken={}",
                    segment(role),
                    segment(&token)
                );
                let headers = [("content-type", "application/x-www-form-urlencoded")];
                let answer = web.ask("POST", &format!("{endpoint}/"), &headers, Some(&form))?;
                let of = |tag: &str| between(&answer.body, tag).map(str::to_owned);
                exchanged(
                    [of("AccessKeyId"), of("SecretAccessKey"), of("SessionToken"), of("Expiration")],
                    now,
                )
                .ok_or_else(|| {
                    format!("STS answers {}: {}", answer.status, of("Message").unwrap_or_default())
                })
            }
            Place::Container { url, token_file, token } => {
                let token = token_file.as_deref().map(secret).transpose()?.or_else(|| token.clone());
                let headers: Vec<_> = token.iter().map(|token| ("authorization", token.as_str())).collect();
                let answer = web.ask("GET", url, &headers, None)?;
                of_json(&answer.body, now)
                    .ok_or_else(|| format!("{url} answers {} and no credentials", answer.status))
            }
            Place::Instance { endpoint } => {
                let lasting = [("x-aws-ec2-metadata-token-ttl-seconds", "21600")];
                let token = web.ask("PUT", &format!("{endpoint}/latest/api/token"), &lasting, None)?.body;
                let headers = [("x-aws-ec2-metadata-token", token.as_str())];
                let base = format!("{endpoint}/latest/meta-data/iam/security-credentials/");
                let role = web.ask("GET", &base, &headers, None)?;
                if role.status != 200 {
                    return Err(
                        "this instance has no role, and the environment names no credentials".to_owned()
                    );
                }
                let answer = web.ask("GET", &format!("{base}{}", role.body.trim()), &headers, None)?;
                of_json(&answer.body, now)
                    .ok_or_else(|| format!("{base} answers {} and no credentials", answer.status))
            }
        }
    }
}

/// Credentials of JSON, as containers and instances give them.
fn of_json(text: &str, now: Duration) -> Option<(Credentials, Duration)> {
    let value: Value = serde_json::from_str(text).ok()?;
    let of = |key: &str| value[key].as_str().map(str::to_owned);
    exchanged([of("AccessKeyId"), of("SecretAccessKey"), of("Token"), of("Expiration")], now)
}

fn exchanged([id, key, token, until]: [Option<String>; 4], now: Duration) -> Option<(Credentials, Duration)> {
    let until =
        until.and_then(|until| UnixMs::from_rfc3339(&until)).map(|until| Duration::from_millis(until.0));
    Some((Credentials::new(id?, key?, token, None, "exchanged"), until.unwrap_or(now + LASTING)))
}

/// The text of the first XML element of this name.
fn between<'a>(xml: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{tag}>"))?;
    rest.split_once("</").map(|(text, _)| text)
}

/// The credentials of a profile in a shared file.
fn of_profile(text: &str, profile: &str) -> Option<Credentials> {
    let heading = format!("[{profile}]");
    let lines = text.lines().map(str::trim).skip_while(|line| *line != heading).skip(1);
    let mut found = [None, None, None];
    for line in lines.take_while(|line| !line.starts_with('[')) {
        let Some((name, value)) = line.split_once('=') else { continue };
        let names = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"];
        if let Some(at) = names.iter().position(|known| *known == name.trim()) {
            found[at] = Some(value.trim().to_owned());
        }
    }
    let [id, key, token] = found;
    Some(Credentials::new(id?, key?, token, None, "profile"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Place {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Place::find(&variable).expect("a place")
    }

    #[test]
    fn places_are_looked_at_in_the_order_of_the_sdks() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("credentials");
        std::fs::write(
            &file,
            "[other]\naws_access_key_id = o\n[default]\naws_access_key_id=d\naws_secret_access_key = s\n",
        )
        .expect("written");
        let profile = [("AWS_SHARED_CREDENTIALS_FILE", file.to_str().expect("text"))];
        assert!(matches!(found(&profile), Place::Fixed(found) if found.access_key_id() == "d"));
        let other = [profile[0], ("AWS_PROFILE", "other")];
        assert!(matches!(found(&other), Place::Instance { .. }), "half of a profile is none");
        let keys = [profile[0], ("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")];
        assert!(matches!(found(&keys), Place::Fixed(found) if found.access_key_id() == "k"));
        let role =
            [("AWS_WEB_IDENTITY_TOKEN_FILE", "/t"), ("AWS_ROLE_ARN", "r"), ("AWS_REGION", "eu-west-1")];
        assert!(
            matches!(found(&role), Place::WebIdentity { endpoint, .. } if endpoint == "https://sts.eu-west-1.amazonaws.com")
        );
        let container = [("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/c")];
        assert!(
            matches!(found(&container), Place::Container { url, .. } if url == "http://169.254.170.2/v2/c")
        );
    }

    #[test]
    fn what_is_given_for_a_while_says_for_how_long() {
        let text =
            r#"{"AccessKeyId":"a","SecretAccessKey":"s","Token":"t","Expiration":"1970-01-01T01:00:00Z"}"#;
        let (credentials, until) = of_json(text, Duration::ZERO).expect("credentials");
        assert_eq!((credentials.session_token(), until), (Some("t"), Duration::from_secs(3600)));
        assert!(of_json("{}", Duration::ZERO).is_none());
        let xml = "<C><AccessKeyId>a</AccessKeyId><SessionToken>t</SessionToken></C>";
        assert_eq!(between(xml, "SessionToken"), Some("t"));
    }
}
