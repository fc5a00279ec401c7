//! Texts of the navigation, of the states of the server, and of the instructions to it.

macro_rules! navigation {
    ($($before:tt)*) => {
        subjects! {
            $($before)*

            websites = "Websites", "Websites";
            activity = "Activity", "Aktivität";
            decimal_separator = ".", ",";
            thousands_separator = ",", ".";
            logs = "Logs", "Logs";
            server = "Server", "Server";
            upstreams = "Other servers", "Andere Server";
            php = "PHP", "PHP";
            databases = "Databases", "Datenbanken";
            certificates = "Certificates", "Zertifikate";
            check_up = "Check-up", "Prüfung";
            history = "History", "Verlauf";
            settings = "Settings", "Einstellungen";

            // State of the server, below the name of the program.
            connecting = "Looking for a server", "Suche nach einem Server";
            starting = "Starting", "Startet";
            stopping = "Stopping", "Wird beendet";
            running = "Running", "Läuft";
            stopped = "Stopped", "Angehalten";
            no_access = "No access", "Kein Zugriff";
            failed = "Not started", "Nicht gestartet";
            not_reachable = "Not reachable", "Nicht erreichbar";
            no_reply = "Does not reply", "Antwortet nicht";

            // Messages in place of a page.
            connecting_title = "Looking for a server …", "Ein Server wird gesucht …";
            starting_title = "The server is starting …", "Der Server startet …";
            stopping_title = "The server is stopping …", "Der Server wird beendet …";
            offline_title = "The server is stopped", "Der Server ist angehalten";
            offline_text = "Start the server to show your websites to browsers.",
                "Starte den Server, damit Browser deine Websites öffnen können.";
            welcome_title = "Welcome to RockNet", "Willkommen bei RockNet";
            welcome_text = "Start the server. It shows a first page, \"It works\", and you add your own websites next.",
                "Starte den Server. Er zeigt eine erste Seite, „It works“, und danach fügst du eigene Websites hinzu.";
            no_access_title = "You have no access to this server", "Du hast keinen Zugriff auf diesen Server";
            no_access_text = "The server was started by another account, and {0} is not accessible to you. Run this program as \
                              that account, or as a member of its group.",
                "Der Server wurde von einem anderen Konto gestartet, und {0} ist für dich nicht zugänglich. Starte dieses \
                 Programm mit jenem Konto oder als Mitglied seiner Gruppe.";
            start_failed_title = "The server could not start", "Der Server konnte nicht starten";
            no_program_text = "The program `rocknet` is neither beside this program nor on the search path. Install RockNet Core.",
                "Das Programm `rocknet` liegt weder neben diesem Programm noch im Suchpfad. Installiere RockNet Core.";
            loading = "Loading …", "Wird geladen …";
            unreachable_title = "No server replies at {0}", "Kein Server antwortet an {0}";
            unreachable_text = "Check that SSH forwards it, and that the server runs on the other computer.",
                "Prüfe, ob SSH weiterleitet und ob der Server auf dem anderen Computer läuft.";
            wrong_token_title = "The server does not accept the token", "Der Server nimmt das Token nicht an";
            wrong_token_text = "Copy it again from the file admin/token in the state folder of the server at {0}.",
                "Kopiere es noch einmal aus der Datei admin/token im Zustandsordner des Servers an {0}.";
            denied_title = "The token does not permit this", "Das Token erlaubt dies nicht";
            denied_text = "The token of this connection only permits to read what is no secret. Enter the full token in the settings.",
                "Das Token dieser Verbindung erlaubt nur zu lesen, was nicht geheim ist. Trage in den Einstellungen das volle Token ein.";
            denied_change = "It only permits to read. Enter the full token in the settings.",
                "Es erlaubt nur zu lesen. Trage in den Einstellungen das volle Token ein.";
            reading_token = "This token may only read.", "Dieses Token darf nur lesen.";
            use_port = "Use port {0}", "Port {0} verwenden";
            no_home = "There is no home folder for the files of this program.",
                "Es gibt keinen persönlichen Ordner für die Dateien dieses Programms.";
            start_no_reply = "It was started, but does not reply.", "Er wurde gestartet, antwortet aber nicht.";
            program_ended = "The program has ended without a message.", "Das Programm hat sich ohne Meldung beendet.";
            not_opened = "{0} cannot be opened. Install the package xdg-utils. ({1})",
                "{0} lässt sich nicht öffnen. Installiere das Paket xdg-utils. ({1})";
            port_held = "The service has not started. Another program uses its port {0}.",
                "Der Dienst ist nicht gestartet. Ein anderes Programm verwendet seinen Port {0}.";
            opener_failed = "{0} was not opened. Install a program for it, such as a browser. (xdg-open: exit code {1})",
                "{0} wurde nicht geöffnet. Installiere ein Programm dafür, etwa einen Browser. (xdg-open: Exit-Code {1})";
            no_editor = "No text editor was found. Set VISUAL, such as VISUAL=code.",
                "Kein Texteditor wurde gefunden. Setze VISUAL, etwa VISUAL=code.";
            no_visual = "The variable VISUAL names no program.", "Die Variable VISUAL nennt kein Programm.";
            no_file = "{0} has no file. Set VISUAL to an editor for folders.",
                "{0} enthält keine Datei. Setze VISUAL auf einen Editor für Ordner.";
            no_address = "The website has no address to request.", "Die Website hat keine Adresse, die abgerufen werden kann.";
            not_http = "This is not a response of HTTP/1.1.", "Das ist keine Antwort nach HTTP/1.1.";
            command_failed = "{0} has failed without a message.", "{0} ist ohne Meldung fehlgeschlagen.";
            ended_title = "The server has ended unexpectedly", "Der Server hat sich unerwartet beendet";
            ended_code = "It ended with the exit code {0}.",
                "Er endete mit dem Code {0}.";
            ended_signal = "The signal {0} has ended it.",
                "Das Signal {0} hat ihn beendet.";
            ended_killed = "It was killed: by another program, or because memory was short.",
                "Er wurde abgebrochen: von einem anderen Programm, oder weil der Speicher knapp war.";
            ended_memory = "The system has ended it because memory was short.",
                "Das System hat ihn beendet, weil der Speicher knapp war.";
            ended_result = "systemd has ended it ({0}).",
                "systemd hat ihn beendet ({0}).";
            ended_unknown = "It was not stopped in this window.",
                "Er wurde nicht in diesem Fenster angehalten.";
            foreign_title = "Another account listens at {0}", "Ein anderes Konto wartet an {0}";
            foreign_text = "Nothing was sent, because another account of this computer would get the token. Start SSH again, or \
                            choose another socket or port in the settings.",
                "Nichts wurde gesendet, denn ein anderes Konto dieses Computers bekäme das Token. Starte SSH neu, oder wähle in \
                 den Einstellungen einen anderen Socket oder Port.";
            no_reply_title = "The server does not reply", "Der Server antwortet nicht";
            no_reply_text = "It accepts connections at {0}, but sends no answer. Its websites may hang too. This window tries \
                             again each second.",
                "Er nimmt Verbindungen unter {0} an, schickt aber keine Antwort. Vielleicht hängen auch seine Websites. Dieses \
                 Fenster versucht es jede Sekunde wieder.";
            websites_outdated = "The list of websites could not be loaded and may be out of date: {0}",
                "Die Liste der Websites konnte nicht geladen werden und ist vielleicht veraltet: {0}";
            rates_failed = "Requests per second could not be loaded: {0}",
                "Anfragen pro Sekunde konnten nicht geladen werden: {0}";
            query_failed = "This could not be loaded", "Das konnte nicht geladen werden";
            last_lines = "Last lines of its output:", "Die letzten Zeilen seiner Ausgabe:";
            disconnected = "The server does not reply. These are the last known values.",
                "Der Server antwortet nicht. Dies sind die letzten bekannten Werte.";
            reload_failed = "The configuration file has an error, so the last change is not in effect: {0}",
                "Die Konfigurationsdatei hat einen Fehler, daher ist die letzte Änderung nicht wirksam: {0}";

            // Instructions to the server.
            start_server = "Start server", "Server starten";
            stop_server = "Stop server", "Server anhalten";
            restart_server = "Restart", "Neu starten";
            reload = "Reload configuration", "Konfiguration neu laden";
            try_again = "Try again", "Erneut versuchen";
            open_config = "Open configuration file", "Konfigurationsdatei öffnen";
            port_taken = "Port {0} is held by {1}, so the first page uses port {2}.",
                "Port {0} wird von {1} benutzt, daher nutzt die erste Seite Port {2}.";
            other_program = "another program", "einem anderen Programm";
            server_started = "The server runs.", "Der Server läuft.";
            still_stopping = "The server still completes requests (open connections: {0}). Stop it again to end it at once.",
                "Der Server beendet noch Anfragen (offene Verbindungen: {0}). Halte ihn noch einmal an, um ihn sofort zu beenden.";
            server_stopped = "The server has stopped.", "Der Server ist angehalten.";
            start_service = "Start the service", "Dienst starten";
            start_own = "Start a server of my own", "Eigenen Server starten";
            start_by_system = "It is the service rocknet of this computer.", "Er ist der Dienst rocknet dieses Computers.";
            start_by_user = "It is the service rocknet of your account.", "Er ist der Dienst rocknet deines Kontos.";
            start_by_program = "It serves your own configuration. The service of this computer serves another one.",
                "Er nutzt deine eigene Konfiguration. Der Dienst dieses Computers nutzt eine andere.";
            may_ask = "The system may ask for a password.", "Das System fragt womöglich nach einem Passwort.";
            closed_title = "A server of this computer is running", "Ein Server dieses Computers läuft";
            closed_text = "Your account has no access to it, because it is not a member of the group {0}. Run this command in a \
                           terminal, sign out and sign in again. Or start a server of your own.",
                "Dein Konto hat keinen Zugriff auf ihn, weil es nicht Mitglied der Gruppe {0} ist. Führe diesen Befehl in einem \
                 Terminal aus, melde dich ab und wieder an. Oder starte einen eigenen Server.";
            refused = "The system did not permit it. Type \"{0}\" in a terminal, or enter the password of an administrator.",
                "Das System hat es nicht erlaubt. Tippe „{0}“ in einem Terminal, oder gib das Passwort eines Administrators ein.";
        }
    };
}
