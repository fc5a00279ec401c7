//! Texts about the figures, the logs and the properties of the server.

macro_rules! server {
    ($($before:tt)*) => {
        subjects! {
            $($before)*

            // Activity.
            cpu = "CPU", "CPU";
            memory = "Memory", "Speicher";
            requests = "Requests per second", "Anfragen pro Sekunde";
            response_times = "Response times", "Antwortzeiten";
            connections = "Open connections", "Offene Verbindungen";
            last_minute = "Last minute", "Letzte Minute";
            last_ten_minutes = "10 minutes", "10 Minuten";
            last_hour = "1 hour", "1 Stunde";
            ago = "{0} ago", "vor {0}";
            no_figures_title = "Figures appear in a moment", "Gleich erscheinen Werte";
            no_figures_text = "The charts need two measurements, one second apart.",
                "Die Diagramme brauchen zwei Messungen im Abstand einer Sekunde.";
            version_up = "RockNet {0}, up for {1}", "RockNet {0}, läuft seit {1}";

            // Logs.
            all_logs = "All", "Alle";
            errors_only = "Messages", "Meldungen";
            access_only = "Requests", "Anfragen";
            problems_only = "Problems", "Probleme";
            follow = "Follow", "Folgen";
            copy = "Copy", "Kopieren";
            filter_lines = "Filter lines", "Zeilen filtern";
            level = "Detail: {0}", "Details: {0}";
            no_lines = "No lines yet. Requests appear here where the access log of a website is on.",
                "Noch keine Zeilen. Anfragen erscheinen hier, wenn das Zugriffsprotokoll einer Website an ist.";
            all_websites = "All websites", "Alle Websites";
            no_line_of_site = "No line of this website. Requests name it if the access log has format = \"json\".",
                "Keine Zeile dieser Website. Anfragen nennen sie, wenn das Zugriffsprotokoll format = \"json\" hat.";
            no_line_matches = "No line matches.", "Keine Zeile passt.";
            lines_counted = "Lines: {0}", "Zeilen: {0}";
            lines_copied = "The lines were copied.", "Die Zeilen wurden kopiert.";
            level_changed = "The log now writes the level \"{0}\" until the next reload.",
                "Das Log schreibt nun bis zum nächsten Laden die Stufe „{0}“.";

            // Server.
            property = "Property", "Eigenschaft";
            value = "Value", "Wert";
            process = "Process", "Prozess";
            mode = "Mode", "Betriebsart";
            mode_dev = "Development", "Entwicklung";
            mode_prod = "Production", "Produktion";
            listening = "Listening at", "Lauscht an";
            workers = "Worker threads", "Arbeits-Threads";
            command_title = "A command of the other server", "Ein Befehl des anderen Servers";
            command_text = "Read it before you copy it. It is for a terminal of the computer that runs the server.",
                "Lies ihn, bevor du ihn kopierst. Er ist für ein Terminal des Computers, auf dem der Server läuft.";
            backend = "I/O back end", "Ein-/Ausgabe";
            change_server = "Change", "Ändern";
            edit_server = "Server settings", "Server-Einstellungen";
            edit_server_subtitle = "In {0}. The ports of a website are in its own form.",
                "In {0}. Die Ports einer Website stehen in ihrem eigenen Formular.";
            server_changed = "The server uses the new settings.", "Der Server nutzt die neuen Einstellungen.";
            upgrade = "Upgrade", "Aktualisieren";
            upgrading = "A new process starts the installed program, and takes over without a gap …",
                "Ein neuer Prozess startet das installierte Programm und übernimmt ohne Lücke …";
            upgraded = "Version {0} has taken over. No connection was cut.",
                "Version {0} hat übernommen. Keine Verbindung wurde getrennt.";
            not_upgraded = "The old process goes on: {0}", "Der alte Prozess läuft weiter: {0}";
            in_all = "{0} open, {1} in all", "{0} offen, {1} insgesamt";
            requests_in_all = "Requests", "Anfragen";
            sent = "Sent", "Gesendet";
            file_cache = "Files in memory", "Dateien im Speicher";
            cache_value = "{0} files, {1}, {2} of lookups", "{0} Dateien, {1}, {2} der Zugriffe";
            sandbox = "Sandbox", "Sandbox";
            config_file = "Configuration file", "Konfigurationsdatei";
            control_socket = "Control socket", "Steuer-Socket";
            started_by = "Started by", "Gestartet von";
            by_system = "the service rocknet of this computer", "Dienst rocknet dieses Computers";
            by_user = "the service rocknet of your account", "Dienst rocknet deines Kontos";
            by_program = "a program, without a service", "ein Programm, ohne Dienst";
            no_polkit = "Needs root, or the package polkitd", "Nur als root oder mit dem Paket polkitd";
            other_config = "Not here: it has another configuration", "Nicht hier: andere Konfiguration";
        }
    };
}
