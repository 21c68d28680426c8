//! The JSON APIs of AWS, over HTTPS, with requests signed by `aws-sigv4`; buckets of S3 and queues of SQS.

mod credentials;
pub(crate) mod s3;
pub(crate) mod sqs;

use crate::web::Web;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use credentials::Chain;
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// What of a table is scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Capacity {
    Read,
    #[default]
    Write,
}

/// Where AWS is.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Region {
    /// By default `AWS_REGION` or `AWS_DEFAULT_REGION`.
    region: Option<String>,
    /// Another URL than AWS', such as one of a test.
    endpoint: Option<String>,
    ca_file: Option<PathBuf>,
}

impl Region {
    /// Whether it is not AWS' own.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.endpoint.is_some()
    }

    /// The same with another URL, if there is one.
    pub(crate) fn with_endpoint(self, endpoint: Option<String>) -> Region {
        Region { endpoint: endpoint.or(self.endpoint), ..self }
    }
}

/// A service of AWS.
#[derive(Debug)]
pub(crate) struct Aws {
    web: Web,
    service: &'static str,
    region: String,
    endpoint: String,
    chain: Mutex<Chain>,
}

impl Aws {
    /// The service of this name.
    ///
    /// # Errors
    /// There is no region.
    pub(crate) fn new(service: &'static str, region: Region) -> Result<Aws, String> {
        Aws::at(service, region.region, region.endpoint, region.ca_file.as_deref())
    }

    /// The service of this name, at an endpoint if it is not AWS' own.
    ///
    /// # Errors
    /// There is no region.
    pub(crate) fn at(
        service: &'static str,
        region: Option<String>,
        endpoint: Option<String>,
        ca_file: Option<&Path>,
    ) -> Result<Aws, String> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let named = region.or_else(|| variable("AWS_REGION")).or_else(|| variable("AWS_DEFAULT_REGION"));
        let name = named.ok_or("region: there is none, here or in AWS_REGION")?;
        let endpoint = endpoint.unwrap_or_else(|| format!("https://{service}.{name}.amazonaws.com"));
        let web = Web::new(ca_file).map_err(|why| format!("ca_file: {why}"))?;
        let endpoint = endpoint.trim_end_matches('/').to_owned() + "/";
        Ok(Aws { web, service, region: name, endpoint, chain: Mutex::new(Chain::new()?) })
    }

    /// Calls an operation, which is named as the header `x-amz-target` has it.
    ///
    /// # Errors
    /// Nobody answers, or what AWS says.
    pub(crate) fn call(&self, target: &str, request: &Value, now: Duration) -> Result<Value, String> {
        let body = request.to_string();
        // What its description in the SDKs says of each service.
        let version = if self.service == "application-autoscaling" { "1.1" } else { "1.0" };
        let content_type = format!("application/x-amz-json-{version}");
        let mut headers =
            vec![("content-type".to_owned(), content_type), ("x-amz-target".to_owned(), target.to_owned())];
        headers.extend(self.signature(&headers, &body, now)?);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let answer = self.web.ask("POST", &self.endpoint, &headers, Some(&body))?;
        let value: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        if answer.status == 200 {
            return Ok(value);
        }
        // `com.amazonaws.dynamodb.v20120810#LimitExceededException`
        let kind = value["__type"].as_str().unwrap_or("no reason given");
        let kind = kind.rsplit('#').next().unwrap_or(kind);
        let message = value["message"].as_str().or(value["Message"].as_str()).unwrap_or_default();
        if kind.starts_with("ExpiredToken") {
            self.forget_credentials();
        }
        Err(format!("{} answers {}: {kind}: {message}", self.service, answer.status))
    }

    fn signature(
        &self,
        headers: &[(String, String)],
        body: &str,
        now: Duration,
    ) -> Result<Vec<(String, String)>, String> {
        let body = SignableBody::Bytes(body.as_bytes());
        self.signed("POST", &self.endpoint, headers, body, SigningSettings::default(), now)
    }

    /// The headers that sign a request.
    ///
    /// # Errors
    /// There are no credentials, or it cannot be signed.
    pub(crate) fn signed(
        &self,
        method: &str,
        url: &str,
        headers: &[(String, String)],
        body: SignableBody<'_>,
        settings: SigningSettings,
        now: Duration,
    ) -> Result<Vec<(String, String)>, String> {
        // Who waits here has no credentials to go on with.
        let mut chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner);
        let identity = chain.credentials(&self.web, now)?.into();
        drop(chain);
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(self.service)
            .time(SystemTime::UNIX_EPOCH + now)
            .settings(settings)
            .build()
            .map_err(|error| error.to_string())?;
        let signed = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let request = SignableRequest::new(method, url, signed, body).map_err(|error| error.to_string())?;
        let (instructions, _) =
            sign(request, &parameters.into()).map_err(|error| error.to_string())?.into_parts();
        let (headers, _) = instructions.into_parts();
        Ok(headers.into_iter().map(|header| (header.name().to_owned(), header.value().to_owned())).collect())
    }

    /// What URLs of the service begin with: it ends with `/`.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The client of its requests.
    pub(crate) fn web(&self) -> &Web {
        &self.web
    }

    /// The credentials that are used now have ended.
    pub(crate) fn forget_credentials(&self) {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner).forget();
    }
}
