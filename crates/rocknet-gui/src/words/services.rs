//! Texts about other servers, PHP and databases.

macro_rules! services {
    ($($before:tt)*) => {
        subjects! {
            $($before)*

            // Other servers, PHP, databases.
            upstreams_help = "Servers that websites forward requests to. One that is out of service finishes its requests, and gets no new visitors.",
                "Server, an die Websites Anfragen weiterleiten. Einer außer Betrieb beendet seine Anfragen und bekommt keine neuen Besucher.";
            drain = "Take out of service", "Außer Betrieb nehmen";
            undrain = "Put into service", "In Betrieb nehmen";
            drained_now = "{0} gets no new visitors.", "{0} bekommt keine neuen Besucher.";
            undrained_now = "{0} gets visitors again.", "{0} bekommt wieder Besucher.";
            no_upstreams_title = "No other servers", "Keine anderen Server";
            no_upstreams_text = "No website forwards requests to another server.",
                "Keine Website leitet Anfragen an einen anderen Server weiter.";
            in_progress = "In progress", "In Arbeit";
            response_time = "Response time", "Antwortzeit";
            upstream_up = "In service", "In Betrieb";
            upstream_down = "Does not reply", "Antwortet nicht";
            upstream_paused = "Paused after errors", "Pausiert nach Fehlern";
            upstream_drained = "Out of service", "Außer Betrieb";
            unknown = "Unknown", "Unbekannt";
            no_php_title = "No website uses PHP", "Keine Website nutzt PHP";
            no_php_text = "The server starts PHP by itself when a website needs it.",
                "Der Server startet PHP von selbst, wenn eine Website es braucht.";
            no_php_installed = "PHP is not installed on this computer: apt install php-fpm",
                "PHP ist auf diesem Computer nicht installiert: apt install php-fpm";
            php_installed = "Installed on this computer: {0}", "Auf diesem Computer installiert: {0}";
            start_php = "Start", "Starten";
            restart_php = "Restart", "Neu starten";
            stop_php = "Stop", "Anhalten";
            php_failed = "Does not run", "Läuft nicht";
            processes = "Processes", "Prozesse";
            restarts = "Restarts", "Neustarts";
            databases_help = "Databases of this computer. Your system may ask for your password to start or stop one.",
                "Datenbanken dieses Computers. Zum Starten oder Anhalten kann dein System nach dem Passwort fragen.";
            databases_help_without_systemd = "Databases of this computer. Without systemd, they are started elsewhere.",
                "Datenbanken dieses Computers. Ohne systemd werden sie anderswo gestartet.";
            no_databases_title = "No database was found", "Keine Datenbank gefunden";
            no_databases_text = "MariaDB, MySQL and PostgreSQL appear here as soon as they are installed: apt install mariadb-server",
                "MariaDB, MySQL und PostgreSQL erscheinen hier, sobald sie installiert sind: apt install mariadb-server";
            database = "Database", "Datenbank";
            connection = "Connection", "Verbindung";
            copy_connection = "Copy connection", "Verbindung kopieren";
            database_start = "Start", "Starten";
            database_stop = "Stop", "Anhalten";
            changing = "Changing", "Wechselt";
            failed_unit = "Failed", "Fehlgeschlagen";
            no_unit = "not started by systemd", "nicht von systemd gestartet";
            unit_started = "{0} runs.", "{0} läuft.";
            unit_stopped = "{0} is stopped.", "{0} ist angehalten.";
        }
    };
}
