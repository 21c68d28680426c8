-- Rooms with an archive, where chat is measured; they send nothing of it to who enters.
Component "rooms.localhost" "muc"
  modules_enabled = { "muc_mam" }
  muc_log_by_default = true
  max_history_messages = 0
