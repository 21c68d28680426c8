//! Members of a domain's policy that are numbers.

use carillon_core::model::Policy;

/// Sets the member of this name; whether there is one.
pub(super) fn set(policy: &mut Policy, name: &str, n: u32) -> bool {
    match name {
        "sessions" => policy.sessions_max = n as u16,
        "all-sessions" => policy.sessions_total_max = n,
        "resumption" => policy.resumption_ms_max = n,
        "accounts" => policy.accounts_max = n,
        "topics" => (policy.topics_owned_max, policy.topics_max) = (1, n),
        "subscriptions" => policy.subscriptions_max = n,
        "rooms" => (policy.rooms_owned_max, policy.rooms_max) = (1, n),
        _ => return false,
    }
    true
}
