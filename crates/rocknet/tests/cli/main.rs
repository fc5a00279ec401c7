//! Tests of the command line: arguments, exit codes, signals and console commands.

mod accounts;
mod api_guard;
mod api_schema;
mod cache_disk;
mod cache_disk_faults;
mod certificates;
mod commands;
mod config;
mod config_owner;
mod control;
mod dashboard;
mod dashboard_add;
mod dashboard_client;
mod dashboard_instructions;
mod dashboard_pages;
mod dashboard_streams;
mod doctor;
mod error_log;
mod failures;
mod hardening;
mod host_folders;
mod http3;
mod includes;
mod isolated;
mod load;
mod logs;
mod new_files;
mod oidc;
mod php_slow_log;
mod php_versions;
mod program;
mod reload_load;
mod running;
mod sandbox;
mod serve;
mod service;
mod service_image;
mod service_manager;
mod support;
mod trust;
mod upgrade;
mod upgrade_accounts;
mod upgrade_limits;
#[allow(dead_code)] // other tests use the rest of this shared module
#[path = "../wire/mod.rs"]
mod wire;
