//! A node's HTTP API, as a provider uses it.

use serde_json::Value;

/// The API of a node, and the key it is spoken to with.
#[derive(Clone)]
pub(super) struct Api {
    pub(super) base: String,
    pub(super) key: String,
}

impl Api {
    pub(super) fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header("authorization", format!("Bearer {}", self.key))
            .header("content-type", "application/json");
        let text = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(text).map_err(|e| e.to_string())?;
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut response = agent.run(request).map_err(|e| format!("{method} {path}: {e}"))?;
        let text = response.body_mut().read_to_string().map_err(|e| e.to_string())?;
        if !response.status().is_success() {
            return Err(format!("{method} {path}: {} {text}", response.status()));
        }
        Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
    }
}
