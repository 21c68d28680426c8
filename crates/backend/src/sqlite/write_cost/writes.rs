//! The worst of each write.

use super::*;

/// Each write there is, as its worst.
pub(super) fn writes() -> Vec<WriteAsk> {
    let asks: Vec<Ask> = [
        of_domains(),
        of_accounts(),
        of_topics(),
        of_notifications(),
        of_keys(),
        of_webhooks(),
        of_nodes(),
        of_rosters(),
        of_privacy_lists(),
        of_chats(),
        of_links(),
        of_leases(),
        of_rooms(),
        of_pushes(),
        of_broadcasts(),
        of_cells(),
        crate::conformance::NOUNS.iter().flat_map(|noun| (noun.writes)(HERE)).collect(),
    ]
    .concat();
    let write = |ask| match ask {
        Ask::Write(ask) => ask,
        other => panic!("{other:?}"),
    };
    asks.into_iter().map(write).collect()
}

fn of_domains() -> Vec<Ask> {
    vec![
        PutDomain { name: "example.org".into(), policy: Policy::default() }.into(),
        ChangePolicy {
            name: "new.example".into(),
            was: None,
            granted: Policy::default(),
            policy: Policy::default(),
        }
        .into(),
        DeleteDomain { domain: HERE, now: T, rows_max: 1 }.into(),
        NoteStored { domain: HERE, bytes: 9 }.into(),
        SetPushTemplates { domain: HERE, templates: Some("{}".into()) }.into(),
    ]
}

fn of_accounts() -> Vec<Ask> {
    let credentials = || Credentials { sha1: None, sha256: None };
    let create = |local: &str| CreateAccount {
        domain: HERE,
        local: local.into(),
        credentials: credentials(),
        is_in_band: true,
        now: T,
    };
    let imported = ImportedAccount { local: alice(), credentials: credentials() };
    vec![
        create("new").into(),
        create("h1").into(),
        ImportAccounts { domain: HERE, accounts: vec![imported], now: T }.into(),
        SetCredentials { domain: HERE, local: alice(), credentials: credentials() }.into(),
        SetAccountState { domain: HERE, local: alice(), state: AccountState::Disabled(T) }.into(),
        RevokeTokens { domain: HERE, local: alice(), agent: None }.into(),
        DeleteAccount { domain: HERE, local: alice(), now: T, held_until: T.plus(9), rows_max: u32::MAX }
            .into(),
    ]
}

fn of_topics() -> Vec<Ask> {
    let config = || TopicConfig { max_items: 100_000, ..TopicConfig::default() };
    let topic = TopicId(1);
    let affiliations = vec![(jid("alice@example.org"), Affiliation::Owner)];
    vec![
        CreateTopic {
            domain: HERE,
            name: "new".into(),
            config: config(),
            affiliations,
            owned_max: 100_000,
            now: T,
        }
        .into(),
        ConfigureTopic { topic, config: config(), items_max: 100 }.into(),
        SetAffiliations { topic, changes: vec![(jid("c1@example.org"), Affiliation::Owner)] }.into(),
        DeleteTopic { topic, rows_max: u32::MAX }.into(),
        Subscribe { topic: TopicId(2), domain: HERE, local: "c1".into(), max: 100_000, now: T }.into(),
        Subscribe { topic, domain: HERE, local: alice(), max: 100_000, now: T }.into(),
        Unsubscribe { topic, domain: HERE, local: alice() }.into(),
        Publish { item: item("new"), keep: 100_000, bytes_max: 1 << 30 }.into(),
        Publish { item: item("i1"), keep: 100_000, bytes_max: 1 << 30 }.into(),
        Retract { topic, item: "i1".into() }.into(),
        Purge { topic, items_max: u32::MAX }.into(),
    ]
}

fn of_notifications() -> Vec<Ask> {
    let change = NotificationChange {
        id: waits(),
        state: NotificationState::Acknowledged,
        sent: Some(T),
        at: T,
        acknowledged_by: Some(AcknowledgedBy::Receipt),
        reason: None,
    };
    let page = carillon_core::ports::Page { entries: 10, bytes: 1000 };
    vec![
        StoreNotification { notification: notification(1).into(), queue_max: 100_000, now: T, wake: None }
            .into(),
        StoreNotification {
            notification: Notification { collapse_key: Some("k".into()), ..notification(2) }.into(),
            queue_max: 100_000,
            now: T,
            wake: None,
        }
        .into(),
        EndNotifications { changes: vec![change] }.into(),
        CancelNotification { id: waits(), now: T }.into(),
        ClaimDue { now: T, until: T.plus(9), page }.into(),
        Sweep { now: T, forget: UnixMs(5), max: 100 }.into(),
        StoreOffline {
            domain: HERE,
            local: alice(),
            received: T,
            stanza: "<m/>".into(),
            expires: None,
            queue_max: 100_000,
            bytes_max: 1 << 30,
            wake: None,
        }
        .into(),
        DeleteOffline { domain: HERE, local: alice(), seqs: vec![1] }.into(),
    ]
}

fn of_keys() -> Vec<Ask> {
    let (key, name) = (KeyId(1), || Box::<str>::from("k1"));
    let digest = LineDigest { number: 1, digest: 1 };
    vec![
        CreateKey {
            hash: [9; 32],
            name: "k".into(),
            domain: Some(HERE),
            scopes: Scopes::of(&[Scope::Send]),
            now: T,
            expires: None,
            networks: Box::default(),
            certificates: Box::default(),
            node_keys_max: NODE_KEYS_MAX,
        }
        .into(),
        DeleteKey { id: KeyId(2) }.into(),
        ExpireKey { id: key, expires: Some(T) }.into(),
        NoteKeyUse { id: key, at: T }.into(),
        Reserve { key, idempotency_key: "new".into(), body_hash: [1; 32], kept_bytes_max: u64::MAX, now: T }
            .into(),
        NoteLines { key, idempotency_key: name(), lines: vec![digest], now: T }.into(),
        Remember { key, idempotency_key: name(), response: "{}".into() }.into(),
        Release { key, idempotency_key: name() }.into(),
    ]
}

fn of_webhooks() -> Vec<Ask> {
    let id = WebhookId(1);
    let group = ParkedGroup { number: 0, shard: 0, shards: 1, sessions: 1, written: T, bytes: "x".into() };
    vec![
        CreateWebhook {
            domain: Some(HERE),
            url: "https://b.example/".into(),
            wanted: EventFilter::ALL,
            contents: false,
            secret: WebhookSecret(Box::new([1; 32])),
            now: T,
        }
        .into(),
        UpdateWebhook {
            id,
            url: Some("https://b.example/".into()),
            types: None,
            states: None,
            contents: None,
            secret: None,
            status: None,
        }
        .into(),
        ClaimWebhooks { owner: 7, now: T, until: T.plus(9), passed: Vec::new() }.into(),
        CommitWebhook {
            id,
            owner: 7,
            progress: WebhookProgress { cursor: 2, ..WebhookProgress::default() },
            is_gone: false,
            letters: Vec::new(),
        }
        .into(),
        DeleteDeadLetters { webhook: id, events: vec![1] }.into(),
        DeleteWebhook { id }.into(),
        StoreParked { group, bytes_max: 1 << 30 }.into(),
        ForgetParked.into(),
    ]
}

fn of_nodes() -> Vec<Ask> {
    let edits = [
        nodes_edit("i1"),
        nodes_edit("new"),
        NodeEdit::Retract("i1".into()),
        NodeEdit::Configure(ConfigChange::default()),
        NodeEdit::Purge,
        NodeEdit::Delete,
    ];
    let many = EditNodes {
        domain: HERE,
        local: alice(),
        node: "node1".into(),
        edits: vec![nodes_edit("i2"), NodeEdit::Retract("i3".into())],
        bounds: NodeBounds { nodes: 100_000, items: 100_000, bytes: 1 << 30 },
        now: T,
    };
    let edit = |edit| EditNode {
        domain: HERE,
        local: alice(),
        node: "node1".into(),
        edit,
        bounds: NodeBounds { nodes: 100_000, items: 100_000, bytes: 1 << 30 },
        now: T,
    };
    [many.into()].into_iter().chain(edits.into_iter().map(|of| edit(of).into())).collect()
}

fn of_rosters() -> Vec<Ask> {
    let bounds = RosterBounds { contacts: 100_000, requests: 100_000, bytes: 1 << 30 };
    let (local, contact, name, groups) = (alice(), jid("new@example.org"), "".into(), Vec::new());
    let block = |edit| ChangeBlockList {
        domain: HERE,
        local: alice(),
        edit,
        bounds: BlockListBounds { addresses: 100_000, bytes: 1 << 30 },
    };
    vec![
        PutContact { domain: HERE, local, contact, name, groups, stand: None, bounds }.into(),
        RemoveContact { domain: HERE, local: alice(), contact: jid("c1@example.org"), other: Some(HERE) }
            .into(),
        ChangeSubscription {
            domain: HERE,
            local: alice(),
            contact: jid("c1@example.org"),
            other: HERE,
            action: SubscriptionAction::Unsubscribed,
            request: "<status/>".into(),
            bounds,
            by_lists: false,
        }
        .into(),
        block(BlockListEdit::Block(vec![full("new@example.org")])).into(),
        block(BlockListEdit::Unblock(vec![full("b1@example.org")])).into(),
        block(BlockListEdit::UnblockAll).into(),
    ]
}

fn of_privacy_lists() -> Vec<Ask> {
    let change = |edit| ChangePrivacyLists {
        domain: HERE,
        local: alice(),
        edit,
        bounds: PrivacyBounds { lists: 10, rules: 100_000, bytes: 1 << 30 },
        block_list: BlockListBounds { addresses: 100_000, bytes: 1 << 30 },
    };
    let put = |name: &str, about| {
        let rule = PrivacyRule { order: 1, about, denies: true, kinds: StanzaKinds::ALL };
        change(PrivacyEdit::Put(PrivacyList { name: name.into(), rules: vec![rule] }))
    };
    vec![
        put("new", RuleAbout::All).into(),
        // The default list is the block list.
        put("home", RuleAbout::Jid(full("b1@example.org"))).into(),
        change(PrivacyEdit::Default(Some("work".into()))).into(),
        change(PrivacyEdit::Default(Some("home".into()))).into(),
        change(PrivacyEdit::Default(None)).into(),
        change(PrivacyEdit::Remove("work".into())).into(),
        change(PrivacyEdit::Remove("home".into())).into(),
    ]
}

fn of_chats() -> Vec<Ask> {
    let message = |displayed: Option<&str>| KeepMessage {
        sender: Some(ArchiveSide { domain: HERE, local: alice(), peer: full("c1@example.org/x") }),
        recipient: Some(ArchiveSide { domain: HERE, local: "c1".into(), peer: full("alice@example.org/y") }),
        received: T,
        stanza: "<message/>".into(),
        has_contents: true,
        displayed: displayed.map(Into::into),
    };
    let private = |ns: &str, xml: &'static str| {
        let elements = vec![PrivateElement { name: "a".into(), ns: ns.into(), xml: xml.into() }];
        StorePrivate { domain: HERE, local: alice(), elements, bytes_max: 1 << 30 }
    };
    let change = ConversationChange { folder: Some(Folder::Archive), ..ConversationChange::default() };
    let preferences = ArchivePreferences {
        default: ArchiveDefault::Roster,
        always: vec![full("a@example.org")],
        never: Vec::new(),
    };
    vec![
        private("n1", "").into(),
        private("n1", "<b/>").into(),
        private("new", "<b/>").into(),
        StoreVcard { domain: HERE, local: alice(), xml: "<v/>".into() }.into(),
        message(None).into(),
        message(Some("m1")).into(),
        message(Some("nothing")).into(),
        SetArchivePreferences { domain: HERE, local: alice(), preferences }.into(),
        EraseArchive { domain: HERE, local: alice() }.into(),
        SweepArchives { now: T, after: AccountId(0), max: 10 }.into(),
        ChangeConversation { domain: HERE, local: alice(), with: jid("c1@example.org"), change }.into(),
        EmptyBin { domain: HERE, local: alice(), max: 100 }.into(),
        ChangeRoomBlocks {
            domain: HERE,
            local: alice(),
            changes: vec![(RoomBlock { is_room: false, jid: jid("new@example.org") }, true)],
            max: 100_000,
        }
        .into(),
    ]
}

fn of_links() -> Vec<Ask> {
    let bounds = LinkBounds { links: 1 << 20, bytes: 1 << 30 };
    let create = |codes: &[&str], url: &str| CreateLink {
        domain: HERE,
        codes: codes.iter().map(|code| (*code).into()).collect(),
        url: url.into(),
        may_change: false,
        expires: None,
        key: None,
        now: T,
        bounds,
    };
    let change = ChangeLink {
        domain: HERE,
        code: "c1".into(),
        url: Some("longer".into()),
        expires: Some(None),
        removed: Some(Some(T)),
        bounds,
    };
    let opened = Opened { at: T, agent: AgentClass::Other };
    let ended = NotificationId(u128::from_be_bytes(*b"t000000000000001"));
    let click = |id| Click { id, domain: HERE, opened };
    vec![
        LinkSecret { domain: HERE, fresh: [1; 32] }.into(),
        create(&["c1", "c2", "new"], "new").into(),
        create(&["c1", "c2"], "u2").into(),
        create(&["c1", "c2"], "new").into(),
        change.into(),
        PutLinkFile { domain: HERE, file: LinkFile::Apple, body: Some("{}".into()) }.into(),
        PutLinkFile { domain: HERE, file: LinkFile::Apple, body: None }.into(),
        CountClicks { clicks: vec![LinkClicks { link: LinkId(1), clicks: 1, last: T }] }.into(),
        OpenNotifications { clicks: vec![click(ended), click(waits())] }.into(),
    ]
}

fn of_leases() -> Vec<Ask> {
    let take = |name: &str| TakeLease {
        name: name.into(),
        holder: "h1".into(),
        now: T,
        until: T.plus(9),
        state: None,
    };
    let release = ReleaseLease { name: "l1".into(), holder: "h1".into() };
    vec![take("l1").into(), take("l2").into(), take("new").into(), release.into()]
}

fn of_rooms() -> Vec<Ask> {
    let room = RoomId(1);
    let said = |displayed: Option<&str>| KeepRoomMessage {
        room,
        received: T,
        sender: jid("alice@example.org"),
        stanza: "<message/>".into(),
        entry: RoomEntry::Counted,
        displayed: displayed.map(Into::into),
        wake: Some(Box::new(RoomWake {
            domain: HERE,
            mentioned: vec!["c1".into()],
            wake: Wake { at: T, topic: "r".into() },
        })),
        listeners: Some(T),
        fact: None,
    };
    let subject = RoomSubject {
        nick: "alice".into(),
        by: jid("alice@example.org"),
        set: T,
        stanza: "<message/>".into(),
    };
    vec![
        create_room("new", 100_000).into(),
        // She owns more.
        create_room("new", 1).into(),
        create_room("r1", 100_000).into(),
        ConfigureRoom { room, config: RoomConfig::default(), version: 1, facts: Vec::new() }.into(),
        room_member("c1", RoomAffiliation::Owner).into(),
        room_member("c1", RoomAffiliation::None).into(),
        SetRoomSubject { room, subject: Some(Box::new(subject)), facts: Vec::new() }.into(),
        SetRoomVcard { room, xml: "<v/>".into(), photos: [PhotoHash([7; 20])].into() }.into(),
        SetRoomVcard { room, xml: "".into(), photos: Box::default() }.into(),
        said(None).into(),
        said(Some("1")).into(),
        said(Some("nothing")).into(),
        ReplaceRoomMessage { room, id: ArchiveId(1), stanza: "<message/>".into(), facts: Vec::new() }.into(),
        EraseRoomArchive { room }.into(),
        SweepRoomArchives { now: T, after: RoomId(0), max: 10 }.into(),
        ChangeRoomBlocks {
            domain: HERE,
            local: alice(),
            changes: vec![(RoomBlock { is_room: false, jid: jid("b1@example.org") }, false)],
            max: 100_000,
        }
        .into(),
        DestroyRoom { room, facts: Vec::new(), rows_max: u32::MAX }.into(),
    ]
}

pub(super) fn create_room(name: &str, owned_max: u32) -> CreateRoom {
    CreateRoom {
        domain: HERE,
        kind: RoomKind::Muc,
        name: name.into(),
        config: RoomConfig::default(),
        members: vec![RoomMember::new(jid("alice@example.org"), RoomAffiliation::Owner)],
        owned_max,
        rooms_max: 100_000,
        now: T,
        facts: Vec::new(),
    }
}

fn room_member(local: &str, affiliation: RoomAffiliation) -> SetRoomMembers {
    SetRoomMembers {
        room: RoomId(1),
        changes: vec![RoomMember::new(jid(&format!("{local}@example.org")), affiliation)],
        version: 1,
        facts: Vec::new(),
    }
}

fn of_pushes() -> Vec<Ask> {
    let enable = |node: &str| EnablePush {
        domain: HERE,
        local: alice(),
        node: node.into(),
        channel: PushChannel::WebPush(WebPushKeys {
            endpoint: "https://push.example/1".into(),
            p256dh: [4; 65],
            auth: PushSecret(vec![9; 16].into()),
        }),
        shown: PushShown::Whole,
        wakes: PushWakes::default(),
        rooms: vec![(RoomKind::Muc, "r1".into())],
        now: T,
        per_account_max: 100_000,
        per_room_max: 1000,
    };
    let claim = |owner, held| ClaimPushes {
        owner,
        now: T,
        until: T.plus(9),
        held,
        page: carillon_core::ports::Page { entries: 10, bytes: 1 << 20 },
    };
    let commit = |outcome| PushCommit {
        id: PushId(2),
        version: 1,
        registration: RegistrationId(1),
        registered: UnixMs(0),
        domain: HERE,
        local: alice(),
        outcome,
        step: None,
    };
    let held = (0..MANY as u64).map(PushId).collect();
    vec![
        enable("app1").into(),
        enable("new").into(),
        claim(8, Vec::new()).into(),
        claim(7, Vec::new()).into(),
        claim(7, held).into(),
        CommitPushes { owner: 7, now: T, pushes: vec![commit(PushOutcome::Taken { at: T })] }.into(),
        CommitPushes { owner: 7, now: T, pushes: vec![commit(PushOutcome::Gone)] }.into(),
        DisablePush { domain: HERE, local: alice(), node: Some("app1".into()) }.into(),
        DisablePush { domain: HERE, local: alice(), node: None }.into(),
    ]
}

pub(super) fn broadcast(id: &str) -> Broadcast {
    let id = id.as_bytes().try_into().expect("sixteen bytes");
    Broadcast {
        id: NotificationId(u128::from_be_bytes(id)),
        domain: HERE,
        audience: Audience::Always,
        priority: Priority::High,
        payload: Payload::Json("{}".into()),
        key: None,
        created: T,
        expires: UnixMs(9_000_000_000_000),
        topic: None,
        pace: BroadcastPace::default(),
        state: BroadcastState::Running,
        ended: None,
        revision: 1,
    }
}

fn of_broadcasts() -> Vec<Ask> {
    let bounds = BroadcastBounds { open: 100_000, bytes: 1 << 30 };
    let first = broadcast("b000000000000001").id;
    let change = |change| ChangeBroadcast { domain: HERE, id: first, change, now: T };
    let end =
        |account| AccountEnd { id: first, account: AccountId(account), at: T, by: AcknowledgedBy::Receipt };
    let steered = BroadcastChange::Steer { paused: Some(true), rate: None, not_before: None, window: None };
    vec![
        CreateBroadcast { broadcast: Arc::new(broadcast("new-new-new-new-")), bounds }.into(),
        CreateBroadcast { broadcast: Arc::new(broadcast("b000000000000001")), bounds }.into(),
        change(steered).into(),
        change(BroadcastChange::Abort).into(),
        EndBroadcasts {
            ends: vec![end(1), end(2)],
            given: vec![GivenCount { id: first, counter: 1, given: 9 }],
        }
        .into(),
    ]
}

fn of_cells() -> Vec<Ask> {
    let device = || jid("d1@example.org");
    let endpoints = CellEndpoints { host: None, c2s_port: None, c2s_tls_port: None, websocket_url: None };
    let cell = CellRecord {
        name: "new".into(),
        weight: 1,
        url: "https://c.example/".into(),
        key: CellKey("s".into()),
        endpoints,
        drain: Draining::Off,
        rate: 1,
    };
    let step = |step| MoveDevice { device: device(), generation: 2, step };
    let request = HeldRequest {
        seq: 0,
        id: NotificationId(9),
        cell: "c1".into(),
        series: "s".into(),
        device: Some(device()),
        path: "/".into(),
        body: "x".into(),
        expires: T,
    };
    let change = CellChange { weight: Some(7), ..CellChange::default() };
    vec![
        CreateCell { cell }.into(),
        ChangeCell { name: "c1".into(), change }.into(),
        RemoveCell { name: "c1".into() }.into(),
        RemoveCell { name: "c2".into() }.into(),
        Place { device: jid("new@example.org"), cell: "c1".into() }.into(),
        step(MoveStep::Arrive).into(),
        step(MoveStep::GiveUp).into(),
        Unplace { device: device() }.into(),
        Hold { request, bytes_max: 1 << 30 }.into(),
        cells::Release { cell: "c1".into(), seqs: vec![1] }.into(),
        ExpireHeld { now: UnixMs(9_000_000_000_001), max: 10 }.into(),
    ]
}

fn nodes_edit(id: &str) -> NodeEdit {
    NodeEdit::Publish {
        id: id.into(),
        payload: "<x/>".into(),
        options: ConfigChange::default(),
        default: TopicConfig::default(),
    }
}
