//! Every command that a page, the console, an error or the documentation names is one of this program, with its options.

use super::Cli;
use clap::{Arg, Command, CommandFactory};
use std::path::{Path, PathBuf};

/// Where texts are that people read.
const PLACES: &[&str] =
    &["README.md", "docs/book", "console", "deploy", "crates/carillon/src", "crates/http/src"];
/// Files of these kinds are read.
const KINDS: &[&str] = &["md", "html", "js", "rs", "service", "yml", "yaml", "txt", "json", "Containerfile"];

#[test]
fn every_command_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    PLACES.iter().for_each(|place| list(&root.join(place), &mut files));
    let (mut named, mut wrong) = (Vec::new(), Vec::new());
    for file in files.iter().filter(|file| *file != &root.join("crates/carillon/src/cli/mentioned.rs")) {
        let text = std::fs::read_to_string(file).expect("a text");
        let name = file.strip_prefix(&root).expect("below it").display().to_string();
        for words in commands(&text, is_markdown(file)) {
            if let Err(why) = check(&words) {
                wrong.push(format!("{name}: `{}`: {why}", words.join(" ")));
            }
            named.push((name.clone(), words.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // None of these is overlooked.
    for (file, start) in [
        ("console/index.html", "carillon key create"),
        ("crates/http/src/openapi/mod.rs", "carillon key create"),
        ("crates/carillon/src/cli/connect/login.rs", "carillon account create"),
        ("README.md", "carillon connect"),
        ("docs/book/load.md", "carillon-load run"),
        ("deploy/systemd/carillon.service", "carillon serve"),
    ] {
        assert!(
            named.iter().any(|(f, words)| f == file && words.starts_with(start)),
            "{file}: {start}\n{named:#?}"
        );
    }
}

#[test]
fn what_does_not_exist_is_found() {
    let found = |text: &str, markdown| -> Vec<Result<(), String>> {
        commands(text, markdown).iter().map(|words| check(words)).collect()
    };
    assert_eq!(found("make a key with <code>carillon key create NAME --scope admin</code>", false), [Ok(())]);
    assert_eq!(
        found("<code>carillon key make --scope admin</code>", false),
        [Err("`carillon key` has no `make`".to_owned())]
    );
    assert_eq!(
        found("//! Make one with `carillon key create NAME\n    //! --scopes admin`, then", false),
        [Err("`carillon key create` has no option `--scopes`".to_owned())]
    );
    assert_eq!(
        found("\"say `carillon key create NAME --scope \\\n     all`\"", false),
        [Err("`--scope` does not take `all`".to_owned())]
    );
    assert_eq!(found("The carillon dances.\n```sh\n$ sudo bin/carillon dance\n```\n", true).len(), 1);
    assert_eq!(found("```sh\ncarillon-load run fanout --set a=1 | less -R # more\n```", true), [Ok(())]);
}

fn list(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).expect("a folder") {
            list(&entry.expect("an entry").path(), files);
        }
    } else if KINDS.iter().any(|kind| path.extension().or(path.file_name()).is_some_and(|end| end == *kind)) {
        files.push(path.to_owned());
    }
}

fn is_markdown(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "md")
}

/// The commands in a text, as words: between back quotes, in an HTML element of its own, and in the blocks of Markdown.
fn commands(text: &str, markdown: bool) -> Vec<Vec<String>> {
    let joined = joined(text);
    let mut found = Vec::new();
    for (start, end) in [('`', '`'), ('>', '<'), ('=', '\n')] {
        for part in joined.split(start).skip(1).filter(|part| is_ours(part)) {
            found.push(part.split(end).next().unwrap_or(part).to_owned());
        }
    }
    if markdown {
        let text = format!("\n{text}");
        let blocks = text.split("\n```").skip(1).step_by(2);
        for line in blocks.flat_map(str::lines) {
            let at = line.split(' ').scan(0, |at, word| {
                let here = *at;
                *at += word.len() + 1;
                Some(here)
            });
            found.extend(at.map(|at| &line[at..]).filter(|rest| is_ours(rest)).map(str::to_owned));
        }
    }
    found.iter().map(|command| words(command)).collect()
}

/// Comments and strings that go on in the next line, as one line.
fn joined(text: &str) -> String {
    let mut joined = String::new();
    for line in text.lines() {
        let bare = line.trim_start();
        let comment = ["///", "//!", "//"].iter().find_map(|start| bare.strip_prefix(start));
        if comment.is_some() && joined.ends_with('\n') {
            joined.pop();
        }
        match (comment.unwrap_or(bare).trim(), line.strip_suffix('\\')) {
            (_, Some(line)) => joined.push_str(&format!("{} ", line.trim())),
            (line, None) => joined.push_str(&format!(" {line}\n")),
        }
    }
    joined
}

/// Whether it begins with one of our programs, wherever that is installed, and the name of a command.
fn is_ours(command: &str) -> bool {
    let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
    let name = program.rsplit('/').next().unwrap_or(program);
    let next = rest.trim_start();
    matches!(name, "carillon" | "carillon-load")
        && next.starts_with(|c: char| c.is_ascii_lowercase())
        && !next.starts_with("carillon")
}

/// The words of a command, up to what is a shell's.
fn words(command: &str) -> Vec<String> {
    let words =
        command.split_whitespace().take_while(|word| !word.starts_with(['|', '>', '&', '#', ';', '\\']));
    let mut words: Vec<String> = words.map(str::to_owned).collect();
    if let Some(program) = words.first_mut() {
        *program = program.rsplit('/').next().unwrap_or_default().to_owned();
    }
    words
}

/// Whether there is such a command, with these options and, where there is a choice of values, with such values.
fn check(words: &[String]) -> Result<(), String> {
    let mut command = match words[0].as_str() {
        "carillon" => Cli::command(),
        _ => carillon_load::cli::Cli::command(),
    };
    let (mut path, mut at) = (words[0].clone(), 1);
    // Options of the commands above that these take, too.
    let mut global: Vec<Arg> = Vec::new();
    while let Some(word) = words.get(at) {
        at += 1;
        if let Some(option) = word.strip_prefix("--") {
            let (name, value) =
                option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
            if name.is_empty() || ["help", "version"].contains(&name) {
                continue;
            }
            let arg = command.get_arguments().chain(&global).find(|arg| arg.get_long() == Some(name));
            let arg = arg.ok_or_else(|| format!("`{path}` has no option `--{name}`"))?;
            let takes = arg.get_action().takes_values();
            if let Some(value) = value.or_else(|| words.get(at).map(String::as_str).filter(|_| takes)) {
                may_be(arg, value)?;
            }
            at += usize::from(takes && value.is_none());
        } else if command.has_subcommands() {
            if sub(&command, word).is_none() && command.get_positionals().next().is_some() {
                // It takes a value in the place of a command.
                continue;
            }
            global.extend(command.get_arguments().filter(|arg| arg.is_global_set()).cloned());
            command = sub(&command, word).ok_or_else(|| format!("`{path}` has no `{word}`"))?;
            path = format!("{path} {word}");
        }
    }
    Ok(())
}

fn sub(command: &Command, name: &str) -> Option<Command> {
    command.find_subcommand(name).cloned()
}

fn may_be(arg: &Arg, value: &str) -> Result<(), String> {
    let known = arg.get_possible_values();
    // A placeholder stands for any value.
    let stands_for_any = !value.starts_with(|c: char| c.is_ascii_lowercase());
    let is_known = |value: &str| known.iter().any(|known| known.matches(value, false));
    if known.is_empty() || stands_for_any || value.split(',').all(is_known) {
        return Ok(());
    }
    Err(format!("`--{}` does not take `{value}`", arg.get_long().unwrap_or_default()))
}
