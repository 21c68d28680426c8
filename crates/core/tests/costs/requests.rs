//! Requests that are as much work as their bytes can make, for each feature that reads lists.

/// A request of any size.
pub(crate) struct Request {
    start: &'static str,
    part: fn(usize) -> String,
    end: &'static str,
    /// What is in its answer.
    pub(crate) answer: &'static str,
}

impl Request {
    /// Whether it is the answer to a question of the server.
    pub(crate) fn is_asked(&self) -> bool {
        self.start.contains("ASKED")
    }

    /// With about so many bytes.
    pub(crate) fn of(&self, bytes: usize) -> String {
        let mut text = self.start.to_owned();
        let mut parts = 0;
        while text.len() + self.end.len() < bytes {
            text += &(self.part)(parts);
            parts += 1;
        }
        text + self.end
    }
}

/// What a client says that was asked what its hash is of.
const OF_A_CLIENT: &str = "<iq type='result' id='ASKED' to='example.org'>\
    <query xmlns='http://jabber.org/protocol/disco#info'>";

pub(crate) fn groups_of_a_contact() -> Request {
    Request {
        start: "<iq type='set' id='1'><query xmlns='jabber:iq:roster'><item jid='a@example.org'>",
        part: |n| format!("<group>g{n}</group>"),
        end: "</item></query></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn blocked_addresses() -> Request {
    Request {
        start: "<iq type='set' id='1'><block xmlns='urn:xmpp:blocking'>",
        part: |n| format!("<item jid='a{n}@x.example'/>"),
        end: "</block></iq>",
        answer: "type='result'",
    }
}

pub(crate) fn unblocked_addresses() -> Request {
    Request {
        start: "<iq type='set' id='0'><block xmlns='urn:xmpp:blocking'><item jid='a1@x.example'/></block></iq>\
            <iq type='set' id='1'><unblock xmlns='urn:xmpp:blocking'>",
        part: |n| format!("<item jid='a{}@x.example'/>", n % 7),
        end: "</unblock></iq>",
        answer: "type='result'",
    }
}

pub(crate) fn unblocked_strangers() -> Request {
    Request {
        start: "<iq type='set' id='1'><unblock xmlns='urn:xmpp:blocking'>",
        part: |n| format!("<item jid='b{n}@x.example'/>"),
        end: "</unblock></iq>",
        answer: "type='result'",
    }
}

pub(crate) fn features_of_a_client() -> Request {
    Request {
        start: OF_A_CLIENT,
        part: |n| format!("<feature var='{}+notify'/>", 1_000_000 - n),
        end: "</query></iq>",
        answer: "",
    }
}

pub(crate) fn identities_of_a_client() -> Request {
    Request {
        start: OF_A_CLIENT,
        part: |n| format!("<identity category='c' type='t' name='{}'/>", 1_000_000 - n),
        end: "</query></iq>",
        answer: "",
    }
}

pub(crate) fn forms_of_a_client() -> Request {
    Request {
        start: OF_A_CLIENT,
        part: |n| {
            format!(
                "<x xmlns='jabber:x:data'><field var='FORM_TYPE' type='hidden'><value>{}</value></field></x>",
                1_000_000 - n
            )
        },
        end: "</query></iq>",
        answer: "",
    }
}

pub(crate) fn fields_of_a_client() -> Request {
    Request {
        start: "<iq type='result' id='ASKED' to='example.org'><query xmlns='http://jabber.org/protocol/disco#info'>\
            <x xmlns='jabber:x:data'><field var='FORM_TYPE' type='hidden'><value>f</value></field>",
        part: |n| format!("<field var='{}'><value>v</value></field>", 1_000_000 - n),
        end: "</x></query></iq>",
        answer: "",
    }
}

pub(crate) fn values_of_a_client() -> Request {
    Request {
        start: "<iq type='result' id='ASKED' to='example.org'><query xmlns='http://jabber.org/protocol/disco#info'>\
            <x xmlns='jabber:x:data'><field var='FORM_TYPE' type='hidden'><value>f</value></field><field var='g'>",
        part: |n| format!("<value>{}</value>", 1_000_000 - n),
        end: "</field></x></query></iq>",
        answer: "",
    }
}

pub(crate) fn options_of_a_publication() -> Request {
    Request {
        start: "<iq type='set' id='1'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='n'>\
            <item id='i'><x xmlns='u'/></item></publish><publish-options><x xmlns='jabber:x:data' type='submit'>",
        part: |n| format!("<field var='pubsub#x{n}'><value>1</value></field>"),
        end: "</x></publish-options></pubsub></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn fields_of_a_configuration() -> Request {
    Request {
        start: "<iq type='set' id='1'><pubsub xmlns='http://jabber.org/protocol/pubsub'><create node='n'/>\
            <configure><x xmlns='jabber:x:data' type='submit'>",
        part: |_| "<field var='pubsub#title'><value>1</value></field>".into(),
        end: "</x></configure></pubsub></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn affiliations_of_a_topic() -> Request {
    Request {
        start: "<iq type='set' id='1' to='pubsub.example.org'><pubsub xmlns='http://jabber.org/protocol/pubsub#owner'>\
            <affiliations node='n'>",
        part: |n| format!("<affiliation jid='a{n}@example.org' affiliation='publisher'/>"),
        end: "</affiliations></pubsub></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn fields_of_an_archive_query() -> Request {
    Request {
        start: "<iq type='set' id='1'><query xmlns='urn:xmpp:mam:2'><x xmlns='jabber:x:data' type='submit'>\
            <field var='FORM_TYPE' type='hidden'><value>urn:xmpp:mam:2</value></field>",
        part: |n| format!("<field var='x{n}'><value>1</value></field>"),
        end: "</x></query></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn a_vcard() -> Request {
    Request {
        start: "<iq type='set' id='1'><vCard xmlns='vcard-temp'>",
        part: |n| format!("<N{n}>x</N{n}>"),
        end: "</vCard></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn private_elements() -> Request {
    Request {
        start: "<iq type='set' id='1'><query xmlns='jabber:iq:private'><s xmlns='u'>",
        part: |n| format!("<c n='{n}'/>"),
        end: "</s></query></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn fields_of_an_inbox_query() -> Request {
    Request {
        start: "<iq type='set' id='1'><inbox xmlns='urn:xmpp:inbox:1'><x xmlns='jabber:x:data' type='submit'>",
        part: |n| format!("<field var='x{n}'><value>1</value></field>"),
        end: "</x></inbox></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn fields_of_a_mongoose_inbox() -> Request {
    Request {
        start: "<iq type='set' id='1'><inbox xmlns='erlang-solutions.com:xmpp:inbox:0'>\
            <x xmlns='jabber:x:data' type='submit'>",
        part: |n| format!("<field var='x{n}'><value>1</value></field>"),
        end: "</x></inbox></iq>",
        answer: "id='1'",
    }
}

/// Says between them that it is active and that it is not; what is held back meanwhile is sent each time.
pub(crate) fn states_of_a_client() -> Request {
    Request {
        start: "",
        part: |n| {
            let state = if n % 2 == 0 { "inactive" } else { "active" };
            format!("<{state} xmlns='urn:xmpp:csi:0'/><presence to='u0@example.org'/>")
        },
        end: "<active xmlns='urn:xmpp:csi:0'/><iq type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn messages_that_carbons_copy() -> Request {
    Request {
        start: "<iq type='set' id='1'><enable xmlns='urn:xmpp:carbons:2'/></iq>\
            <message to='u0@example.org' type='chat'><body>hi</body><x xmlns='u'>",
        part: |n| format!("<c n='{n}'/>"),
        end: "</x></message>",
        answer: "id='1'",
    }
}

/// Of which each is told in the end that it is gone, up to the bound on their number. To nobody who could answer: what is counted is what the
/// session does.
pub(crate) fn directed_presence() -> Request {
    Request {
        start: "",
        part: |n| format!("<presence to='d{n}@x.example'/>"),
        end: "<presence type='unavailable'/><iq type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>",
        answer: "id='1'",
    }
}

/// What a client says first that enters a room.
macro_rules! in_a_room {
    ($rest:literal) => {
        concat!(
            "<presence to='r@rooms.example.org/n'><x xmlns='http://jabber.org/protocol/muc'/></presence>",
            $rest
        )
    };
}

pub(crate) fn members_of_a_room() -> Request {
    Request {
        start: in_a_room!(
            "<iq type='set' id='1' to='r@rooms.example.org'><query xmlns='http://jabber.org/protocol/muc#admin'>"
        ),
        part: |n| format!("<item affiliation='member' jid='a{n}@x.example'/>"),
        end: "</query></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn outcasts_of_a_room() -> Request {
    Request {
        start: in_a_room!(
            "<iq type='set' id='1' to='r@rooms.example.org'><query xmlns='http://jabber.org/protocol/muc#admin'>"
        ),
        part: |n| format!("<item affiliation='outcast' jid='b{n}@x.example'><reason>r</reason></item>"),
        end: "</query></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn roles_of_a_room() -> Request {
    Request {
        start: in_a_room!(
            "<iq type='set' id='1' to='r@rooms.example.org'><query xmlns='http://jabber.org/protocol/muc#admin'>"
        ),
        part: |_| "<item role='participant' nick='n'/>".into(),
        end: "</query></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn fields_of_a_room() -> Request {
    Request {
        start: in_a_room!(
            "<iq type='set' id='1' to='r@rooms.example.org'><query xmlns='http://jabber.org/protocol/muc#owner'>\
             <x xmlns='jabber:x:data' type='submit'>"
        ),
        part: |n| format!("<field var='muc#x{n}'><value>1</value></field>"),
        end: "</x></query></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn words_in_a_room() -> Request {
    Request {
        start: in_a_room!("<message type='groupchat' id='1' to='r@rooms.example.org'><body>"),
        part: |n| format!("@a{n} "),
        end: "</body></message>",
        answer: "id='1'",
    }
}

pub(crate) fn invited_to_a_room() -> Request {
    Request {
        start: in_a_room!(
            "<message id='1' to='r@rooms.example.org'><x xmlns='http://jabber.org/protocol/muc#user'>"
        ),
        part: |n| format!("<invite to='a{n}@x.example'/>"),
        end: "</x></message><iq type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn occupants_of_a_light_room() -> Request {
    Request {
        start: "<iq type='set' id='1' to='muclight.example.org'><query xmlns='urn:xmpp:muclight:0#create'><occupants>",
        part: |n| format!("<user affiliation='member'>a{n}@example.org</user>"),
        end: "</occupants></query></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn fields_of_a_light_room() -> Request {
    Request {
        start: "<iq type='set' id='1' to='muclight.example.org'><query xmlns='urn:xmpp:muclight:0#create'><configuration>",
        part: |n| format!("<f{n}>x</f{n}>"),
        end: "</configuration></query></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn blocked_in_light_rooms() -> Request {
    Request {
        start: "<iq type='set' id='1' to='muclight.example.org'><query xmlns='urn:xmpp:muclight:0#blocking'>",
        part: |n| format!("<user action='deny'>a{n}@example.org</user>"),
        end: "</query></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn options_of_a_push() -> Request {
    Request {
        start: "<iq type='set' id='1'><enable xmlns='urn:xmpp:push:0' jid='push.example.org' node='n'>\
            <x xmlns='jabber:x:data' type='submit'>",
        part: |n| format!("<field var='x{n}'><value>1</value></field>"),
        end: "</x></enable></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn rules_of_a_privacy_list() -> Request {
    Request {
        start: "<iq type='set' id='1'><query xmlns='jabber:iq:privacy'><list name='a'>",
        part: |n| {
            format!("<item type='jid' value='a{n}@x.example' action='deny' order='{}'/>", 1_000_000 - n)
        },
        end: "</list></query></iq>",
        answer: "id='1'",
    }
}

/// The default list is the block list, which is changed with it.
pub(crate) fn rules_of_the_default_list() -> Request {
    Request {
        start: "<iq type='set' id='0'><query xmlns='jabber:iq:privacy'><list name='d'>\
            <item action='allow' order='1'/></list></query></iq>\
            <iq type='set' id='0'><query xmlns='jabber:iq:privacy'><default name='d'/></query></iq>\
            <iq type='set' id='1'><query xmlns='jabber:iq:privacy'><list name='d'>",
        part: |n| format!("<item type='jid' value='a{n}@x.example' action='deny' order='{n}'/>"),
        end: "</list></query></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn rules_of_a_message() -> Request {
    Request {
        start: "<message id='1' to='u0@example.org' type='chat'><body>hi</body>\
            <amp xmlns='http://jabber.org/protocol/amp'>",
        part: |n| format!("<rule action='notify' condition='c{n}' value='v'/>"),
        end: "</amp></message>",
        answer: "id='1'",
    }
}

pub(crate) fn wishes_of_a_player() -> Request {
    Request {
        start: "<iq type='set' id='1' to='matches.example.org/q'><ticket xmlns='urn:carillon:matches:0'>",
        part: |n| format!("<alike name='n{n}'>v</alike>"),
        end: "</ticket></iq>",
        answer: "id='1'",
    }
}

pub(crate) fn fields_of_a_command() -> Request {
    Request {
        start: "<iq type='set' id='1' to='example.org'><command xmlns='http://jabber.org/protocol/commands' \
            node='urn:xmpp:invite#invite' action='execute'><x xmlns='jabber:x:data' type='submit'>",
        part: |n| format!("<field var='x{n}'><value>1</value></field>"),
        end: "</x></command></iq>",
        answer: "id='1'",
    }
}
