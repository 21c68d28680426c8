//! The API as clients see it: the real router over a real node and a real store.

mod admin;
mod auth;
mod batch;
mod chat;
mod conversations;
mod devices;
mod drain;
mod errors;
mod events;
mod examples;
mod import;
mod leases;
mod links;
mod links_hostile;
mod listing;
mod messages;
mod notifications;
mod openapi;
mod operation;
mod presence;
mod publishing;
mod request_ids;
mod support;
mod tenants;
mod topics;
mod webhooks;
