//! One file of the form, read element by element. What is held at a time is one user, of a bounded size.

use super::{BadXml, INCLUDE, NAMESPACES};
use carillon_wire::xml::Element;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;
use quick_xml::{NsReader, Writer, XmlVersion};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes of a user, or of whatever else is read at a time.
const BYTES_MAX: usize = 32 << 20;

/// A file that is being read.
pub(super) struct Source {
    reader: NsReader<Counted>,
    path: PathBuf,
    buffer: Vec<u8>,
    /// The elements that are open.
    open: Vec<Level>,
    /// The host whose users these are.
    host: String,
    /// Whether its element was read.
    has_root: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Server,
    Host,
}

/// What a file has next.
pub(super) enum Told {
    /// A user of a host.
    User { line: u64, host: String, element: Element },
    /// More is in another file.
    Include { line: u64, host: String, href: String },
    /// Something that is not of the form.
    Passed(String),
    /// Nothing.
    End,
}

impl Source {
    /// Opens a file, in which users are of this host until it says otherwise.
    pub(super) fn open(path: &Path, host: String) -> io::Result<Source> {
        let mut reader = NsReader::from_reader(Counted::new(BufReader::new(File::open(path)?)));
        reader.config_mut().expand_empty_elements = true;
        let (path, buffer, open) = (path.to_owned(), Vec::new(), Vec::new());
        Ok(Source { reader, path, buffer, open, host, has_root: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.reader.get_ref().bytes
    }

    /// What comes next.
    pub(super) fn next(&mut self) -> Result<Told, BadXml> {
        loop {
            self.reader.get_mut().left = BYTES_MAX;
            // White space is an event of its own: a tag begins where that ended.
            let line = self.reader.get_ref().lines + 1;
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            let event = self.reader.read_event_into(&mut buffer).map(Event::into_owned);
            self.buffer = buffer;
            match event.map_err(|error| self.bad(line, error.to_string()))? {
                Event::Start(start) => {
                    if let Some(told) = self.start(line, &start)? {
                        return Ok(told);
                    }
                }
                Event::End(_) => {
                    self.open.pop();
                }
                Event::DocType(_) => return Err(self.bad(line, "a document type is not read".to_owned())),
                Event::Eof if !self.open.is_empty() => {
                    return Err(self.bad(line, "the file ends in the middle: it is not whole".to_owned()));
                }
                Event::Eof if !self.has_root => {
                    return Err(self.bad(line, "the file is empty".to_owned()));
                }
                Event::Eof => return Ok(Told::End),
                _ => {}
            }
        }
    }

    fn start(&mut self, line: u64, start: &BytesStart<'_>) -> Result<Option<Told>, BadXml> {
        let ns = match self.reader.resolver().resolve_element(start.name()).0 {
            ResolveResult::Bound(ns) => ns.into_inner().to_owned(),
            ResolveResult::Unbound | ResolveResult::Unknown(_) => String::new(),
        };
        let name = start.local_name().into_inner().to_owned();
        let is_known = NAMESPACES.contains(&&*ns);
        let is_first = !std::mem::replace(&mut self.has_root, true);
        match &*name {
            "server-data" if is_known && is_first => self.open.push(Level::Server),
            "host" if is_known && (is_first || self.open.last() == Some(&Level::Server)) => {
                self.host = self.attribute(line, start, "jid")?;
                self.open.push(Level::Host);
            }
            "user" if is_known && (is_first || self.open.last() == Some(&Level::Host)) => {
                let element = self.element(line, start, &ns)?;
                return Ok(Some(Told::User { line, host: self.host.clone(), element }));
            }
            "include" if ns == INCLUDE && !is_first => {
                let href = self.attribute(line, start, "href")?;
                self.skip(line, start)?;
                return Ok(Some(Told::Include { line, host: self.host.clone(), href }));
            }
            _ if is_first => {
                let detail = format!("`{name}` in the namespace `{ns}` is not what XEP-0227 begins with");
                return Err(self.bad(line, detail));
            }
            _ => {
                self.skip(line, start)?;
                return Ok(Some(Told::Passed(format!("<{name} xmlns='{ns}'/>"))));
            }
        }
        Ok(None)
    }

    /// Reads the whole of an element, without comments and instructions.
    fn element(&mut self, line: u64, start: &BytesStart<'_>, ns: &str) -> Result<Element, BadXml> {
        let mut out = Writer::new(Vec::new());
        let write =
            |out: &mut Writer<Vec<u8>>, event: Event<'_>| out.write_event(event).expect("memory takes it");
        write(&mut out, Event::Start(start.borrow()));
        let (mut depth, mut buffer) = (1, std::mem::take(&mut self.buffer));
        while depth > 0 {
            buffer.clear();
            match self.reader.read_event_into(&mut buffer) {
                Ok(Event::Comment(_) | Event::PI(_) | Event::Decl(_)) => {}
                Ok(Event::Eof) => {
                    let detail = "the file ends in the middle of this user: it is not whole".to_owned();
                    return Err(self.bad(line, detail));
                }
                Ok(event) => {
                    match event {
                        Event::Start(_) => depth += 1,
                        Event::End(_) => depth -= 1,
                        _ => {}
                    }
                    write(&mut out, event);
                }
                Err(error) => {
                    let line = self.reader.get_ref().lines + 1;
                    return Err(self.bad(line, error.to_string()));
                }
            }
        }
        self.buffer = buffer;
        let parsed = Element::parse(out.get_ref(), ns);
        parsed.map_err(|error| self.bad(line, format!("this user cannot be read: {error}")))
    }

    fn skip(&mut self, line: u64, start: &BytesStart<'_>) -> Result<(), BadXml> {
        self.element(line, start, "").map(drop).or_else(|error| match error {
            // What is passed over need not be understood.
            BadXml::Form { detail, .. } if detail.starts_with("this user") => Ok(()),
            error => Err(error),
        })
    }

    fn attribute(&self, line: u64, start: &BytesStart<'_>, name: &str) -> Result<String, BadXml> {
        let found = start.try_get_attribute(name).map_err(|error| self.bad(line, error.to_string()))?;
        let element = start.local_name().into_inner().to_owned();
        let found = found.ok_or_else(|| self.bad(line, format!("`{element}` has no attribute `{name}`")))?;
        let value = found.normalized_value(XmlVersion::Implicit1_0);
        value.map(Cow::into_owned).map_err(|error| self.bad(line, error.to_string()))
    }

    fn bad(&self, line: u64, detail: String) -> BadXml {
        BadXml::Form { file: self.name(), line, detail }
    }
}

/// Counts what is read, and reads no more at a time than it may.
struct Counted {
    inner: BufReader<File>,
    bytes: u64,
    lines: u64,
    left: usize,
}

impl Counted {
    fn new(inner: BufReader<File>) -> Counted {
        Counted { inner, bytes: 0, lines: 0, left: BYTES_MAX }
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(buffer.len());
        buffer[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Counted {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            let detail = format!("a user, or what is between two, has more than {BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, detail));
        }
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        let read = self.inner.buffer().get(..count).unwrap_or_default();
        self.lines += read.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.bytes += count as u64;
        self.left = self.left.saturating_sub(count);
        self.inner.consume(count);
    }
}
