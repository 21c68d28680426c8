//! A connection to Redis, and what is asked over it.

use super::View;
use super::options::Options;
use super::queue::{Asked, What};
use carillon_core::model::Epoch;
use carillon_core::ports::claims::KEPT_MS;
use carillon_core::ports::{Claimed, Policy};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, ErrorKind, FromRedisValue, RedisError, RedisResult, ServerErrorKind, Value,
};
use std::time::Duration;

/// How long connecting and each answer may take.
const CONNECT_MAX: Duration = Duration::from_secs(1);
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// A server that is connected to, with the scripts that it knows.
pub(super) struct Server {
    connection: MultiplexedConnection,
    claim: String,
    forget: String,
    /// Names the process of the server: another one may have lost what this one had.
    pub(super) run: String,
}

impl Server {
    /// Connects, and gives the server the scripts.
    pub(super) async fn connect(options: &Options) -> RedisResult<Server> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_MAX))
            .set_response_timeout(Some(ANSWER_MAX));
        let mut connection =
            options.next_client()?.get_multiplexed_async_connection_with_config(&config).await?;
        let info: String = redis::cmd("INFO").query_async(&mut connection).await?;
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_default().trim().to_owned()
        };
        if field("role") == "slave" {
            return Err((ErrorKind::Server(ServerErrorKind::ReadOnly), "the server is a replica").into());
        }
        let policy = field("maxmemory_policy");
        if !matches!(&*policy, "noeviction" | "") && field("maxmemory") != "0" {
            tracing::warn!(
                policy,
                "Redis removes keys when its memory is full: claims may be lost, and two nodes be the home of one account"
            );
        }
        let mut load = redis::pipe();
        for script in [include_str!("claim.lua"), include_str!("forget.lua")] {
            load.cmd("SCRIPT").arg("LOAD").arg(script);
        }
        let (claim, forget) = load.query_async(&mut connection).await?;
        Ok(Server { connection, claim, forget, run: field("run_id") })
    }

    /// Whether it answers.
    pub(super) async fn ping(&mut self) -> RedisResult<()> {
        redis::cmd("PING").query_async(&mut self.connection).await
    }

    /// Asks all in one round trip. What could not be asked here is returned, with the reason: it may be asked of another server, or later.
    pub(super) async fn ask(
        &mut self,
        asked: Vec<Asked>,
        prefix: &str,
        own: Epoch,
        view: &View,
    ) -> Result<(), (Vec<Asked>, RedisError)> {
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for Asked { account, what, .. } in &asked {
            let key = format!("{prefix}:a:{{{account}}}");
            match what {
                What::Claim(policy, _) => pipe
                    .cmd("EVALSHA")
                    .arg(&self.claim)
                    .arg(1)
                    .arg(key)
                    .arg(own.0)
                    .arg(u8::from(*policy == Policy::Single))
                    .arg(view.newest.0)
                    .arg(KEPT_MS)
                    .arg(&*view.packed),
                What::Locate(_) => pipe.cmd("GET").arg(key),
                What::Forget(of) => pipe.cmd("EVALSHA").arg(&self.forget).arg(1).arg(key).arg(of.0),
            };
        }
        let answers: Vec<RedisResult<Value>> = match pipe.query_async(&mut self.connection).await {
            Ok(answers) => answers,
            Err(e) => return Err((asked, e)),
        };
        let (mut left, mut reason) = (Vec::new(), None);
        for (asked, answer) in asked.into_iter().zip(answers) {
            match answer {
                Ok(answer) => give(asked, &answer, own, view),
                Err(e) if is_elsewhere(&e) => {
                    left.push(asked);
                    reason = Some(e);
                }
                // For the sake of this account alone: it is answered as unavailable.
                Err(e) => tracing::warn!(error = %e, "Redis refuses a question"),
            }
        }
        reason.map_or(Ok(()), |reason| Err((left, reason)))
    }
}

/// Whether another server, or this one with the scripts, may answer it.
fn is_elsewhere(e: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, NoScript, ReadOnly, TryAgain};
    let ErrorKind::Server(kind) = e.kind() else { return e.is_io_error() };
    matches!(kind, BusyLoading | ClusterDown | MasterDown | NoScript | ReadOnly | TryAgain)
}

/// Gives an answer.
fn give(asked: Asked, answer: &Value, own: Epoch, view: &View) {
    let Ok(epoch) = Option::<String>::from_redis_value_ref(answer) else {
        return tracing::warn!("an answer of Redis cannot be read");
    };
    let epoch = epoch.as_deref().and_then(epoch_of);
    match asked.what {
        What::Claim(policy, answering) => answering.give(match (epoch, policy) {
            (None, _) => Claimed::Fresh,
            (Some(epoch), _) if epoch == own => Claimed::Mine,
            (Some(epoch), Policy::Single) => Claimed::Replaced(epoch),
            (Some(epoch), Policy::Multi) => Claimed::Seat(epoch),
        }),
        What::Locate(answering) => {
            answering.give(epoch.filter(|epoch| *epoch == own || view.lives(*epoch)));
        }
        What::Forget(_) => {}
    }
}

/// The epoch of a value: "EPOCH" or "EPOCH<BEFORE".
fn epoch_of(value: &str) -> Option<Epoch> {
    value.split('<').next()?.parse().ok().map(Epoch)
}
