//! What to do about an error that a server's limits or settings cause.

/// What an operator does so that a server registers more accounts.
pub const MORE_REGISTRATIONS: &str =
    "Carillon: raise limits.registrations_per_address, or start it with limits.profile=benchmark";

/// What an operator can do about a kind of error that happened so often, in a sentence.
pub fn remedy(kind: &str, count: u64) -> Option<String> {
    let (_, why) = kind.split_once("registration failed: ")?;
    // Its processors are busy, which is no limit.
    if why.contains("too busy") {
        return None;
    }
    let what = match why.split([' ', ':', ';']).next()? {
        "resource-constraint" | "policy-violation" => MORE_REGISTRATIONS,
        "not-allowed" | "service-unavailable" | "forbidden" => {
            "Carillon: registration.in_band=true allows registrations"
        }
        _ => return None,
    };
    let plural = if count == 1 { "" } else { "s" };
    Some(format!("The server refused {count} registration{plural}. {what}."))
}

#[cfg(test)]
mod tests {
    use super::remedy;

    #[test]
    fn refused_registrations_name_the_setting() {
        let words = remedy("login: registration failed: resource-constraint (too many)", 200).expect("words");
        assert_eq!(
            words,
            "The server refused 200 registrations. Carillon: raise limits.registrations_per_address, or start it with \
             limits.profile=benchmark."
        );
        assert!(
            remedy("login: registration failed: not-allowed", 1).is_some_and(|it| it.contains("in_band"))
        );
        assert_eq!(remedy("login: not-authorized", 1), None);
    }
}
