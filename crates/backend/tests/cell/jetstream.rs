//! Durable queues of JetStream.

use crate::server::Nats;
use async_nats::jetstream::{self, stream};
use carillon_backend::conformance::queue::{CASES, Engine, Running};
use carillon_backend::nats::jetstream::{Options, open};
use carillon_core::ports::{Queue, QueueFault};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A server with a stream.
struct Stream {
    server: Nats,
    context: jetstream::Context,
}

impl Stream {
    async fn new() -> Stream {
        let server = Nats::start("jetstream: { store_dir: \"FOLDER\" }");
        let client = async_nats::connect(server.address.to_string()).await.expect("a connection");
        let context = jetstream::new(client);
        let config = stream::Config {
            name: "S".into(),
            subjects: vec!["s.>".into()],
            retention: stream::RetentionPolicy::WorkQueue,
            ..stream::Config::default()
        };
        context.create_stream(config).await.expect("a stream");
        Stream { server, context }
    }

    fn options(&self) -> Options {
        let options = Options::new(&format!("nats://{}", self.server.address), "S", "test");
        Options { ack_wait: Duration::from_secs(2), ..options }
    }
}

impl Engine for Stream {
    fn open(&self) -> Arc<dyn Queue> {
        open(self.options()).expect("it opens")
    }

    fn put(&self, bodies: &[&str]) -> Running<'_> {
        let bodies: Vec<String> = bodies.iter().map(|body| (*body).to_owned()).collect();
        Box::pin(async move {
            for body in bodies {
                let kept = self.context.publish("s.x", body.into()).await.expect("it is sent");
                kept.await.expect("it is kept");
            }
        })
    }

    fn pass(&self) -> Running<'_> {
        let moment = tokio::time::timeout(Duration::from_millis(200), std::future::pending::<()>());
        Box::pin(async { drop(moment.await) })
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

#[test]
fn conforms() {
    let runtime = runtime();
    crate::each(CASES.iter().map(|case| {
        let runtime = &runtime;
        let run = move || runtime.block_on(async { (case.run)(&Stream::new().await).await });
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}

#[test]
fn what_is_not_as_the_settings_say_is_refused() {
    runtime().block_on(async {
        let stream = Stream::new().await;
        let refused = |options: Options| async {
            match open(options).expect("it opens").pull(1, 1).await {
                Err(QueueFault::Wrong(why)) => why,
                other => panic!("{other:?}"),
            }
        };
        let missing = refused(Options { stream: "T".into(), ..stream.options() }).await;
        assert!(missing.contains("there is no stream T"), "{missing}");
        stream.open().depth().await.expect("it makes its consumer");
        let subject = refused(Options { subject: Some("s.y".into()), ..stream.options() }).await;
        assert!(subject.contains("takes the subject \"\""), "{subject}");
        let config = jetstream::consumer::pull::Config {
            durable_name: Some("none".into()),
            ack_policy: jetstream::consumer::AckPolicy::None,
            ..Default::default()
        };
        let config_stream =
            stream::Config { name: "L".into(), subjects: vec!["l".into()], ..Default::default() };
        let limits = stream.context.create_stream(config_stream).await.expect("a stream");
        limits.create_consumer(config).await.expect("a consumer");
        let policy =
            refused(Options { stream: "L".into(), consumer: "none".into(), ..stream.options() }).await;
        assert!(policy.contains("ack policy `explicit`"), "{policy}");
        assert!(open(Options { stream: "a.b".into(), ..stream.options() }).is_err());
    });
}
