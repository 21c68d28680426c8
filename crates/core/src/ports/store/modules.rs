//! Modules: the versions that were pushed, and which of them are activated.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Load, Loads, Missing};
use crate::model::UnixMs;
use crate::ports::modules::{ModuleHash, OnFailure};
use bytes::Bytes;

questions! {
    Modules,
    reads {
        ListModules => ModuleList,
        ModuleCode => Option<Bytes>,
    }
    writes {
        PushModule => Result<(), TooManyModules>,
        ActivateModule => Result<(), Missing>,
        DeactivateModule => (),
        RemoveModule => Result<(), ModuleIsActive>,
    }
    once {}
    loads {
        PushModule,
        ActivateModule,
    }
}

/// How many modules there are at most.
pub const MODULES_MAX: u32 = 16;

/// How many versions of a module are kept: of those that are neither activated nor the base of what is, the oldest go.
pub const MODULE_VERSIONS_MAX: u32 = 8;

/// All versions, and what is activated.
#[derive(Clone, Debug)]
pub struct ListModules;

/// The code of a version.
#[derive(Clone, Debug)]
pub struct ModuleCode {
    pub name: Box<str>,
    pub hash: ModuleHash,
}

/// Keeps a version of a module, unless it is there.
#[derive(Clone, Debug)]
pub struct PushModule {
    pub name: Box<str>,
    pub hash: ModuleHash,
    pub code: Bytes,
    pub now: UnixMs,
}

impl Loads for PushModule {
    fn load(&self) -> Load<'_> {
        Load { bytes: self.name.len() + self.code.len(), account: None }
    }
}

/// There are as many modules as there may be; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyModules;

/// Activates versions of a module, in place of what was activated of it. Both versions must be there.
#[derive(Clone, Debug)]
pub struct ActivateModule {
    pub name: Box<str>,
    pub activation: Activation,
}

impl Loads for ActivateModule {
    fn load(&self) -> Load<'_> {
        let Activation { version, base, node, domain, .. } = &self.activation;
        let base = base.as_ref().map(|base| &base.config);
        let texts = [Some(&version.config), base, node.as_ref(), domain.as_ref()];
        let bytes = self.name.len() + texts.into_iter().flatten().map(|text| text.len()).sum::<usize>();
        Load { bytes, account: None }
    }
}

/// No version of the module is activated any more.
#[derive(Clone, Debug)]
pub struct DeactivateModule {
    pub name: Box<str>,
}

/// All versions of a module go, unless one of them is activated.
#[derive(Clone, Debug)]
pub struct RemoveModule {
    pub name: Box<str>,
}

/// A version of the module is activated; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleIsActive;

impl Activation {
    /// Whether its version decides everything.
    pub fn is_for_all(&self) -> bool {
        !self.is_shadow && self.percent == 100 && self.domain.is_none() && self.node.is_none()
    }
}

/// What is activated of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activation {
    pub version: Configured,
    /// The last good version, which decides for all others.
    pub base: Option<Configured>,
    /// On the node of this name alone.
    pub node: Option<Box<str>>,
    /// For this domain alone.
    pub domain: Option<Box<str>>,
    /// For so many accounts of a hundred.
    pub percent: u8,
    pub is_shadow: bool,
    pub on_failure: OnFailure,
    pub since: UnixMs,
}

/// A version, with what the operator tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured {
    pub hash: ModuleHash,
    pub config: Box<str>,
}

/// What there is of modules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleList {
    /// By name, the newest version of each first.
    pub versions: Vec<PushedModule>,
    /// By name.
    pub activated: Vec<(Box<str>, Activation)>,
}

/// A version that was pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedModule {
    pub name: Box<str>,
    pub hash: ModuleHash,
    pub code_bytes: u64,
    pub pushed: UnixMs,
}
