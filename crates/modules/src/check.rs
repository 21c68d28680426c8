//! What code must be before the compiler sees it.

use crate::abi;
use crate::bounds::Bounds;
use carillon_core::ports::modules::{HookSet, ModuleHook};
use wasmparser::{CompositeInnerType, ExternalKind, Parser, Payload, TypeRef, ValType, Validator};

/// Checks code by its parts, and returns the hooks that it has.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub(crate) fn check(code: &[u8], bounds: &Bounds) -> Result<HookSet, String> {
    if code.len() > bounds.code_bytes {
        let most = bounds.code_bytes;
        return Err(format!("the module has {} bytes of code, of at most {most}", code.len()));
    }
    if Parser::is_component(code) {
        return Err("this is a component; a module of `carillon:hooks@1` is a core module".into());
    }
    Validator::new().validate_all(code).map_err(|error| format!("this is not WebAssembly: {error}"))?;
    let (mut hooks, mut has_memory, mut parts) = (HookSet::default(), false, Parts::default());
    for payload in Parser::new(0).parse_all(code) {
        match payload.map_err(|error| error.to_string())? {
            Payload::TypeSection(types) => parts.read_types(types)?,
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    parts.import(&import.map_err(|error| error.to_string())?)?;
                }
            }
            Payload::FunctionSection(functions) => {
                for of_type in functions {
                    parts.functions.push(of_type.map_err(|error| error.to_string())?);
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export.map_err(|error| error.to_string())?;
                    has_memory |= export.kind == ExternalKind::Memory && export.name == "memory";
                    hooks = parts.export(&export, hooks)?;
                }
            }
            Payload::CodeSectionEntry(body) if body.range().len() > bounds.function_bytes => {
                let (bytes, most) = (body.range().len(), bounds.function_bytes);
                return Err(format!("one of its functions has {bytes} bytes of code, of at most {most}"));
            }
            _ => {}
        }
    }
    if hooks == HookSet::default() {
        let names = ModuleHook::ALL.map(|hook| format!("`{}`", hook.name())).join(", ");
        return Err(format!("it exports none of the functions {names}"));
    }
    if hooks.has_any(HookSet::MATCH) && HookSet::MATCH.iter().any(|hook| !hooks.has(hook)) {
        return Err(
            "a module that decides matches exports `match_tick`, `match_save` and `match_load`".into()
        );
    }
    if !has_memory {
        return Err("it does not export its memory as `memory`".into());
    }
    Ok(hooks)
}

/// The functions of a module and their types.
#[derive(Default)]
struct Parts {
    /// Of each type: whether it takes nothing and returns an `i32`.
    is_hook_type: Vec<bool>,
    /// The type of each function, imported ones first.
    functions: Vec<u32>,
}

impl Parts {
    fn read_types(&mut self, types: wasmparser::TypeSectionReader<'_>) -> Result<(), String> {
        for group in types {
            for of_type in group.map_err(|error| error.to_string())?.into_types() {
                self.is_hook_type.push(match &of_type.composite_type.inner {
                    CompositeInnerType::Func(func) => {
                        func.params().is_empty() && func.results() == [ValType::I32]
                    }
                    _ => false,
                });
            }
        }
        Ok(())
    }

    fn import(&mut self, import: &wasmparser::Import<'_>) -> Result<(), String> {
        let TypeRef::Func(of_type) = import.ty else {
            return Err(format!("it imports `{}` of `{}`, which is no function", import.name, import.module));
        };
        self.functions.push(of_type);
        abi::check_import(import.module, import.name)
    }

    fn export(&self, export: &wasmparser::Export<'_>, hooks: HookSet) -> Result<HookSet, String> {
        let Some(hook) = ModuleHook::ALL.into_iter().find(|hook| hook.name() == export.name) else {
            return Ok(hooks);
        };
        let of_type =
            self.functions.get(export.index as usize).and_then(|of| self.is_hook_type.get(*of as usize));
        match (export.kind, of_type) {
            (ExternalKind::Func, Some(true)) => Ok(hooks.with(hook)),
            _ => Err(format!("its export `{}` is not a function `() -> i32`", export.name)),
        }
    }
}
