//! Texts about bans, limits and stored responses.

macro_rules! traffic {
    ($($before:tt)*) => {
        subjects! {
            $($before)*

            traffic = "Traffic", "Zugriffe";
            traffic_help = "Connections of banned clients are closed. Bans follow from many failed or refused requests, or are made here.",
                "Verbindungen gesperrter Clients werden geschlossen. Sperren folgen aus vielen fehlgeschlagenen oder abgelehnten Anfragen, oder werden hier gesetzt.";
            stored_responses = "Stored responses", "Gespeicherte Antworten";
            stored_in_memory = "{0} in memory", "{0} im Speicher";
            stored_on_disk = "{0} in memory, {1} on disk", "{0} im Speicher, {1} auf dem Datenträger";
            served_stored = "Sent from these", "Daraus gesendet";
            share_of_requests = "{0} of {1} requests", "{0} von {1} Anfragen";
            limited = "Requests above limits", "Anfragen über Limits";
            limited_value = "{0} refused, {1} delayed", "{0} abgelehnt, {1} verzögert";
            banned_clients = "Banned clients", "Gesperrte Clients";
            no_bans_title = "No client is banned", "Kein Client ist gesperrt";
            no_bans_text = "Clients with failed logins, missing files or refused requests appear here, too.",
                "Auch Clients mit fehlgeschlagenen Anmeldungen, fehlenden Dateien oder abgelehnten Anfragen erscheinen hier.";
            client = "Client", "Client";
            reason = "Reason", "Grund";
            until = "Until", "Bis";
            banned = "Banned", "Gesperrt";
            not_banned = "Not banned", "Nicht gesperrt";
            until_lifted = "Until it is lifted", "Bis zur Aufhebung";
            more_bans = "More bans: {0}", "Weitere Sperren: {0}";
            failed_logins = "failed logins: {0}", "fehlgeschlagene Anmeldungen: {0}";
            missing_files = "missing files: {0}", "fehlende Dateien: {0}";
            refused_requests = "refused requests: {0}", "abgelehnte Anfragen: {0}";
            failed_handshakes = "failed handshakes: {0}", "fehlgeschlagene Handshakes: {0}";
            ban = "Ban", "Sperren";
            lift_ban = "Lift the ban", "Sperre aufheben";
            banned_now = "{0} is banned.", "{0} ist gesperrt.";
            ban_lifted = "The ban of {0} is lifted.", "Die Sperre von {0} ist aufgehoben.";
            ban_address = "Ban an address", "Adresse sperren";
            ban_address_label = "Address or network", "Adresse oder Netz";
            ban_address_help = "For example 192.0.2.7 or 192.0.2.0/24. Clients that ban.exempt names are not banned.",
                "Zum Beispiel 192.0.2.7 oder 192.0.2.0/24. Clients, die ban.exempt nennt, werden nicht gesperrt.";
            ban_time = "Duration", "Dauer";
            ban_time_help = "The key ban.time configures the usual duration.", "Der Schlüssel ban.time legt die übliche Dauer fest.";
            ban_reason_help = "The list of bans shows it.", "Die Liste der Sperren zeigt ihn.";
            as_configured = "As configured", "Wie konfiguriert";
            half_an_hour = "30 minutes", "30 Minuten";
            one_day = "1 day", "1 Tag";
            one_week = "7 days", "7 Tage";
            thirty_days = "30 days", "30 Tage";
            drop_responses = "Drop responses", "Antworten verwerfen";
            drop_help = "Stored responses that are dropped are requested again from the application.",
                "Verworfene gespeicherte Antworten werden bei der Anwendung neu angefordert.";
            drop_selection = "Responses", "Antworten";
            drop_url = "Of a URL", "Einer URL";
            drop_prefix = "Of all URLs that begin with", "Aller URLs, die beginnen mit";
            drop_by_tag = "With a tag", "Mit einem Tag";
            drop_all = "All", "Alle";
            drop_url_help = "For example https://example.com/page, with its query.",
                "Zum Beispiel https://example.com/page, mit der Query.";
            drop_tag = "Tag", "Tag";
            drop_tag_help = "A tag that the application sends with its responses.",
                "Ein Tag, das die Anwendung mit ihren Antworten sendet.";
            drop_site_help = "Empty for all websites.", "Leer für alle Websites.";
            drop_now = "Drop", "Verwerfen";
        }
    };
}
