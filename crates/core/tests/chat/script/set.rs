//! Settings of features that have several.

use carillon_core::settings;

/// Sets what rooms of MUC Light may be.
pub(super) fn muclight(muclight: &mut settings::MucLight, key: &str, value: &str) {
    match key {
        "muclight.all_can_configure" => muclight.all_can_configure = value == "yes",
        "muclight.all_can_invite" => muclight.all_can_invite = value == "yes",
        "muclight.max_occupants" => muclight.occupants = value.parse().expect("a number"),
        "muclight.rooms_per_user" => muclight.rooms_per_user = value.parse().expect("a number"),
        "muclight.rooms_per_page" => muclight.rooms_per_page = value.parse().expect("a number"),
        "muclight.fields" => muclight.fields = value.split(',').map(Into::into).collect(),
        _ => panic!("no setting {key}"),
    }
}

/// Sets what files may be.
pub(super) fn upload(upload: &mut settings::Upload, key: &str, value: &str) {
    match key {
        "upload.url" => upload.url = value.to_owned(),
        "upload.types" => upload.types = value.split(',').map(Into::into).collect(),
        "upload.file_bytes" => upload.file_bytes = value.parse().expect("a number"),
        "upload.account_bytes" => upload.account_bytes = value.parse().expect("a number"),
        _ => panic!("no setting {key}"),
    }
}
