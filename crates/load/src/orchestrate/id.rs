//! Ids of tests.

/// A unique id for a test.
pub(super) fn new_id() -> Result<String, String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
