//! Passwords become SCRAM keys here, off the threads that serve requests.

use crate::app::App;
use crate::problem::{Code, Problem};
use crate::random;
use carillon_core::model::Credentials;
use carillon_core::sasl::scram;
use std::num::NonZero;
use tokio::sync::Semaphore;

/// Who may hash passwords now: at most one thread for every two cores, so that a storm of enrolments leaves the shards
/// their share of the machine.
pub(crate) struct Derivations(Semaphore);

impl App {
    /// Who may hash passwords now.
    pub(crate) fn derivations(&self) -> &Derivations {
        self.part()
    }
}

impl Default for Derivations {
    fn default() -> Derivations {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Derivations(Semaphore::new(cores.div_ceil(2)))
    }
}

impl Derivations {
    /// The SCRAM keys of a password, with a new salt.
    pub(crate) async fn derive(&self, password: String, iterations: u32) -> Result<Credentials, Problem> {
        let _permit = self.0.acquire().await.expect("the semaphore is never closed");
        tokio::task::spawn_blocking(move || keys(&password, iterations))
            .await
            .map_err(|error| Problem::unexpected(&error))?
    }

    /// Whether a password is that of these keys.
    pub(crate) async fn verify(&self, password: String, credentials: Credentials) -> Result<bool, Problem> {
        let _permit = self.0.acquire().await.expect("the semaphore is never closed");
        tokio::task::spawn_blocking(move || scram::is_password(&password, &credentials))
            .await
            .map_err(|error| Problem::unexpected(&error))
    }
}

/// What a secret of our own making needs: it has 192 random bits, which no number of iterations makes harder to guess.
pub(crate) const ITERATIONS_OF_RANDOM: u32 = 4096;

fn keys(password: &str, iterations: u32) -> Result<Credentials, Problem> {
    if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
        let detail = format!("a secret has 1 to {PASSWORD_BYTES_MAX} bytes");
        return Err(Problem::new(Code::InvalidSecret, detail));
    }
    let salt = random::bytes::<16>();
    scram::keys(password, &salt, iterations)
        .map_err(|error| Problem::new(Code::InvalidSecret, error.to_string()))
}

const PASSWORD_BYTES_MAX: usize = 1024;
