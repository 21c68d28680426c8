-- Tokens that were taken back (XEP-0484): the counts of `carillon_core::model::Revocations`; null for none.
ALTER TABLE account ADD COLUMN revocations BLOB;
