//! The list of hooks: each is declared here and nowhere else.
//!
//! - `each NAME: TYPE`: any number of features have it; they run in the order of [`crate::features::ORDER`].
//! - `one NAME: TYPE`: one feature has it; a second one does not compile.
//! - `list NAME: TYPE`: a feature has any number of these.

use super::*;

/// Gives the list of hooks to a macro, which makes something of each.
macro_rules! each_hook {
    ($make:ident) => {
        $make! {
            /// Adds stream features before authentication.
            each offer_before_auth: OfferBeforeAuthHook;
            /// Offers something inline with SASL2.
            each offer_inline: OfferInlineHook;
            /// Logs clients in by mechanisms of its own.
            each proof: &'static ProofHandler;
            /// Decides on a login whose proof is right, before the client is told.
            one authorise: AuthoriseHook;
            /// A client of SASL2 has proved who it is, and its success is about to be sent.
            each success: SuccessHook;
            /// A stanza before authentication.
            each stanza_before_auth: StanzaBeforeAuthHook;
            /// Adds stream features for an authenticated client (RFC 6120 §4.3.2).
            each offer: OfferHook;
            /// What is to be read of an account at each login; the feature gets it when a session is about to be bound.
            list login: LoginPart;
            /// A session was bound; its bind result is sent.
            each open: OpenHook;
            /// See [`ShutdownHook`].
            each shutdown: ShutdownHook;
            /// A session ends.
            each close: CloseHook;
            /// A session has lost its connection, and waits for its client to resume it.
            each parked: ParkedHook;
            /// A session is about to go on in another process.
            each leaves: LeavesHook;
            /// A session was resumed, and its client has been sent what it lacked.
            each resumed: ResumedHook;
            /// See [`RestoredHook`].
            each restored: RestoredHook;
            /// See [`HomesMovedHook`].
            each homes_moved: HomesMovedHook;
            /// A session goes on in another process: it ends here, and nobody is told.
            each taken: TakenHook;
            /// Keeps traces of notifications, which go on in another process with the sessions.
            one traces: &'static TracesHandler;
            /// How clients resume sessions.
            one resumption: &'static ResumptionHandler;
            /// What of an account's record the feature needs at the account's home.
            list record: RecordPart;
            /// What an account's record says of its contacts.
            one contacts: &'static ContactsHandler;
            /// Decides on a message that has come to the home of the account that it is for, and passes, before all other features.
            one screen_arrived: ScreenArrivedHook;
            /// A stanza has come to the home of the account that it is for, and passes.
            one arrived: ArrivedHook;
            /// What an account neither sends nor is sent.
            each filter: FilterHook;
            /// Which list a session has chosen.
            one session_list: SessionListHook;
            /// Whom an account blocks.
            one blocks: &'static BlocksHandler;
            /// Some may see an account from now on, or may not any more.
            each seen: SeenHook;
            /// A message to an account, at the account's home.
            each account_message: AccountMessageHook;
            /// Sessions were not told of all that changed in their account's record.
            each missed: MissedHook;
            /// A session says how available it is.
            each announced: AnnouncedHook;
            /// It is needed what the client can do, and not known.
            one discover: DiscoverHook;
            /// What a client wants to be told.
            one wants: WantsHook;
            /// It is known what the client can do.
            each capable: CapableHook;
            /// A result or an error came from the client, for the server.
            each response: ResponseHook;
            /// A stanza came from the client: whether it was handled before.
            each repeated: RepeatedHook;
            /// A stanza came from the client, before any decision on it.
            each receive: ReceiveHook;
            /// A message that somebody outside sends in the name of an account, before it is routed.
            each acted: ActedHook;
            /// A message from the client, before it is routed.
            each submit_message: SubmitHook;
            /// Decides on a message before all other features.
            one screen: ScreenHook;
            /// Takes the modules of the shard; a feature that does is in the pipeline only while there are any.
            one set_modules: SetModulesHook;
            /// Decides on a notification before it is accepted.
            one admit: AdmitHook;
            /// Decides on what a push tells, before its push service is asked.
            one render_push: RenderPushHook;
            /// Something happened of which streams and webhooks are told.
            each event: EventHook;
            /// A presence from the client, before it is routed.
            each submit_presence: SubmitHook;
            /// A stanza from the client is about to be routed.
            each unsettled: UnsettledHook;
            /// A message from the client is settled.
            each settled: SettledHook;
            /// IQ requests answered on behalf of the server or of the client's own account.
            list iq: IqHandler;
            /// IQ requests of an account's own sessions, answered at its home.
            list at_home: HomeHandler;
            /// Answers some of these requests instead of the feature that they are for.
            one instead: &'static InsteadHandler;
            /// Commands of the server (XEP-0050) that accounts may give.
            list ad_hoc: CommandHandler;
            /// Which of them a session may give.
            one commands: CommandsHook;
            /// Describes a node of the client's own account (XEP-0030 §3.2), at its home.
            one node_info: &'static HomeHandler;
            /// IQ requests of others to an account, answered at its home.
            list asked: AskedHandler;
            /// Top-level elements that are no stanzas, by namespace.
            list nonza: NonzaHandler;
            /// Carries out the rules that senders give with their messages.
            one rules: &'static RulesHandler;
            /// A stanza to an account, about to be given to some of its sessions.
            each routed: RoutedHook;
            /// Whether a message must wait, so that it does not overtake older ones that a session is still to be given.
            each must_wait: MustWaitHook;
            /// A message to an account none of whose sessions takes it.
            each absent: AbsentHook;
            /// Stores a message that was given to parked sessions only.
            one keep: &'static KeepHandler;
            /// When what is stored wakes its account.
            one wakes: WakesHook;
            /// Whether a session is given what a room says.
            each hears: HearsHook;
            /// A stanza about to be given to a session.
            each deliver: DeliverHook;
            /// Something about to be written to the client.
            each emit: EmitHook;
            /// Something was written to the client.
            each emitted: EmittedHook;
            /// A chat message was written to a client without stream management.
            one given: GivenHook;
            /// Initial presence was sent.
            each available: AvailableHook;
            /// More of what waits for the session can be written.
            each catch_up: CatchUpHook;
            /// Whether the session must learn what has arrived before it ends.
            each awaits_arrival: AwaitsArrivalHook;
            /// Whether the session was given something that the store holds until it is acknowledged.
            each in_flight: InFlightHook;
            /// How much of what was written has not arrived.
            each unacked: UnackedHook;
            /// Kinds of stanzas that are tracked until the client acknowledges them.
            list tracked: TrackedHandler;
            /// Timers of a session.
            list timers: TimerHandler;
            /// Tells an operator about a session.
            each describe: DescribeHook;
            /// Something happened on a topic that the session follows.
            each publication: PublicationHook;
            /// Something that a room says.
            each room: RoomHook;
            /// A command from outside.
            each command: CommandHook;
            /// A message from another home.
            each message: MessageHook;
            /// Writes that the store refused are to be repeated.
            each retry: RetryHook;
            /// A write is not repeated any more.
            each given_up: GivenUpHook;
            /// See [`TickHook`].
            each tick: TickHook;
            /// See [`WalkHook`].
            each walk: WalkHook;
            /// A topic's home has answered what an IQ asked for.
            one topic_answer: TopicAnswerHook;
        }
    };
}

pub(crate) use each_hook;

/// Makes the hooks of a feature.
macro_rules! of_feature {
    ($($(#[doc = $about:literal])+ $kind:ident $name:ident: $hook:ty;)*) => {
        /// A feature's hooks. Start from [`Hooks::NONE`].
        pub struct Hooks {
            $($(#[doc = $about])+ pub $name: of_feature!(@field $kind $hook),)*
        }

        impl Hooks {
            /// No hooks.
            pub const NONE: Hooks = Hooks { $($name: of_feature!(@none $kind),)* };
        }

        /// The name of a hook that is for one feature and that several of these have.
        pub const fn taken_twice(features: &[&Feature]) -> Option<&'static str> {
            $(of_feature!(@check $kind $name features);)*
            None
        }
    };
    (@field list $hook:ty) => { &'static [$hook] };
    (@field $kind:ident $hook:ty) => { Option<$hook> };
    (@none list) => { &[] };
    (@none $kind:ident) => { None };
    (@check one $name:ident $features:ident) => {
        let (mut at, mut takers) = (0, 0);
        while at < $features.len() {
            takers += $features[at].hooks.$name.is_some() as usize;
            at += 1;
        }
        if takers > 1 {
            return Some(stringify!($name));
        }
    };
    (@check $kind:ident $name:ident $features:ident) => {};
}

each_hook!(of_feature);
