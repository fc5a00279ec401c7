//! Directives that RockNet does not need.

/// Returns true if RockNet does not need a directive.
pub(super) fn contains(name: &str) -> bool {
    UNNEEDED.iter().any(|known| name == *known || is_prefix(known, name))
}

/// Returns true if `known` ends in `*`, and `name` begins with the part before it.
fn is_prefix(known: &str, name: &str) -> bool {
    known.strip_suffix('*').is_some_and(|prefix| name.starts_with(prefix))
}

/// Directives that RockNet does not need. A final `*` stands for any ending.
const UNNEEDED: &[&str] = &[
    "sendfile*",
    "tcp_nopush",
    "tcp_nodelay",
    "keepalive_*",
    "types_hash_*",
    "server_names_hash_*",
    "gzip_*",
    "brotli_*",
    "default_type",
    "charset",
    "aio*",
    "directio*",
    "open_file_cache*",
    "log_not_found",
    "server_tokens",
    "types",
    "ssl_ciphers",
    "ssl_prefer_server_ciphers",
    "ssl_session_*",
    "ssl_dhparam",
    "ssl_ecdh_curve",
    "ssl_stapling*",
    "ssl_trusted_certificate",
    "ssl_conf_command",
    "ssl_buffer_size",
    "http2*",
    "reset_timedout_*",
    "fastcgi_split_path_info",
    "fastcgi_index",
    "fastcgi_buffer*",
    "fastcgi_busy_buffers_size",
    "fastcgi_temp*",
    "fastcgi_max_temp_file_size",
    "fastcgi_send_timeout",
    "fastcgi_connect_timeout",
    "fastcgi_keep_conn",
    "fastcgi_request_buffering",
    "fastcgi_socket_keepalive",
    "uwsgi_buffer*",
    "client_header_buffer_size",
    "recursive_error_pages",
    "merge_slashes",
    "server_name_in_redirect",
    "port_in_redirect",
    "absolute_redirect",
    "fastcgi_intercept_errors",
    "output_buffers",
    "ssl_protocols",
    "variables_hash_*",
];
