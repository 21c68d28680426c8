//! Why a login failed (RFC 6120 §6.5).

/// Why a login failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The client gave up.
    Aborted,
    /// The account may not log in.
    AccountDisabled,
    /// The token has expired.
    CredentialsExpired,
    /// A message was not base 64.
    IncorrectEncoding,
    /// The client wants to act as somebody else.
    InvalidAuthzid,
    /// A mechanism that was not offered.
    InvalidMechanism,
    /// A message was not what the mechanism expects.
    MalformedRequest,
    /// The proof is wrong, or the account does not exist: the client is not told which.
    NotAuthorized,
    /// A type of channel binding that was not offered.
    UnknownBinding,
    /// Too many failures, or the store could not answer: the client may try again later.
    TemporaryAuthFailure,
}

impl Failure {
    /// The defined condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Failure::Aborted => "aborted",
            Failure::AccountDisabled => "account-disabled",
            Failure::CredentialsExpired => "credentials-expired",
            Failure::IncorrectEncoding => "incorrect-encoding",
            Failure::InvalidAuthzid => "invalid-authzid",
            Failure::InvalidMechanism => "invalid-mechanism",
            // RFC 6120 §6.5 has no condition of its own for it.
            Failure::MalformedRequest | Failure::UnknownBinding => "malformed-request",
            Failure::NotAuthorized => "not-authorized",
            Failure::TemporaryAuthFailure => "temporary-auth-failure",
        }
    }

    /// A text for the client's developer, where the condition does not say enough.
    pub fn text(self) -> Option<&'static str> {
        match self {
            Failure::TemporaryAuthFailure => {
                Some("Too many failed logins, or the store cannot answer; try again later.")
            }
            Failure::UnknownBinding => Some("This type of channel binding was not offered (XEP-0440)."),
            _ => None,
        }
    }
}
