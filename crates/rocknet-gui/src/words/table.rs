//! Table of the texts: the name, the English form and the German form of each.

/// Declares the type of the texts, and a value for each language.
macro_rules! table {
    ($($name:ident = $english:literal, $german:literal;)*) => {
        /// Texts of one language.
        #[derive(Debug, PartialEq, Eq)]
        pub struct Words {
            $(pub $name: &'static str,)*
        }

        pub const ENGLISH: Words = Words { $($name: $english,)* };

        pub const GERMAN: Words = Words { $($name: $german,)* };

        /// Name and forms of each text.
        #[cfg(test)]
        pub const ROWS: &[(&str, &str, &str)] = &[$((stringify!($name), $english, $german),)*];
    };
}

table! {
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

    // Websites.
    add_website = "Add website", "Website hinzufügen";
    filter_websites = "Filter by any column", "Nach jeder Spalte filtern";
    no_websites_title = "No websites yet", "Noch keine Websites";
    no_websites_text = "A website is a folder with files, or another server that requests are forwarded to.",
        "Eine Website ist ein Ordner mit Dateien oder ein anderer Server, an den Anfragen weitergeleitet werden.";
    nothing_matches = "No website matches \"{0}\".", "Keine Website passt zu „{0}“.";
    websites_counted = "{0} websites, {1} served", "{0} Websites, {1} werden ausgeliefert";
    one_website = "1 website", "1 Website";
    website = "Website", "Website";
    state = "State", "Zustand";
    shows = "Shows", "Inhalt";
    address = "Address", "Adresse";
    per_second = "Requests/s", "Anfragen/s";
    served = "Served", "Aktiv";
    disabled = "Disabled", "Deaktiviert";
    fault = "Fault", "Fehler";
    show_websites = "Show websites ({0})", "Websites zeigen ({0})";
    offline_list = "Websites in {1}: {0}. The server serves them once it is started.",
        "Websites in {1}: {0}. Der Server liefert sie nach dem Start aus.";
    offline_errors = "Errors in the configuration: {0}. The list begins with them.",
        "Fehler in der Konfiguration: {0}. Die Liste beginnt mit ihnen.";
    not_loaded = "Not loaded yet", "Noch nicht geladen";
    edited_one = "The configuration file was edited: {0} is not loaded yet.",
        "Die Konfigurationsdatei wurde bearbeitet: {0} ist noch nicht geladen.";
    edited_added = "The configuration file was edited: {0} websites are not loaded yet.",
        "Die Konfigurationsdatei wurde bearbeitet: {0} Websites sind noch nicht geladen.";
    edited_removed = "The configuration file was edited, and no longer has {0}.",
        "Die Konfigurationsdatei wurde bearbeitet und hat {0} nicht mehr.";
    edited_file = "{0} was edited, and is not loaded yet.", "{0} wurde bearbeitet und ist noch nicht geladen.";
    edited_broken = "{0} was edited, and has an error in line {1}.",
        "{0} wurde bearbeitet und hat einen Fehler in Zeile {1}.";
    edited_unusable = "{0} was edited, and cannot be loaded.", "{0} wurde bearbeitet und kann nicht geladen werden.";
    edited_unreadable = "The server cannot read {0}: {1}", "Der Server kann {0} nicht lesen: {1}";
    reload_now = "Reload", "Neu laden";
    open = "Open", "Öffnen";
    open_folder = "Folder", "Ordner";
    open_editor = "Editor", "Editor";
    open_log = "Log", "Log";
    protocol = "Protocol", "Protokoll";
    certificate = "Certificate", "Zertifikat";
    php_elsewhere = "external", "extern";
    trusted = "Trusted", "Vertraut";
    not_yet = "Not yet", "Noch nicht";
    trust_local = "Local", "Lokal";
    trust_files = "Your files", "Eigene Dateien";
    duplicate = "Duplicate", "Duplizieren";
    enable = "Enable", "Aktivieren";
    disable = "Disable", "Deaktivieren";
    remove = "Remove", "Entfernen";
    undo = "Undo", "Rückgängig";
    removed = "{0} was removed from the configuration. Its files are untouched.",
        "{0} wurde aus der Konfiguration entfernt. Die Dateien sind unberührt.";
    disabled_now = "{0} is disabled.", "{0} ist deaktiviert.";
    enabled_now = "{0} is served again.", "{0} wird wieder ausgeliefert.";
    duplicated = "{0} is a copy of {1}.", "{0} ist eine Kopie von {1}.";
    added = "{0} was added.", "{0} wurde hinzugefügt.";
    undone = "The last change was taken back.", "Die letzte Änderung wurde zurückgenommen.";
    undone_several = "{0} changes were taken back.", "{0} Änderungen wurden zurückgenommen.";
    nothing_to_undo = "There is no change of this window to take back. The history has earlier ones.",
        "Es gibt keine Änderung dieses Fensters, die zurückgenommen werden kann. Der Verlauf hat frühere.";
    opened = "{0} opens in the browser.", "{0} wird im Browser geöffnet.";

    // Form that edits a website, and questions about its input.
    edit = "Edit", "Bearbeiten";
    edit_website = "Edit website", "Website bearbeiten";
    edit_title = "Edit {0}", "{0} bearbeiten";
    edit_subtitle = "Saved in {0}", "Gespeichert in {0}";
    save = "Save", "Speichern";
    saving = "Saving …", "Wird gespeichert …";
    changed = "{0} is saved, and served as you see it.", "{0} ist gespeichert und wird so ausgeliefert.";
    edit_as_text = "Edit as text", "Als Text bearbeiten";
    edited_as_text = "This value is edited as text.", "Dieser Wert wird als Text bearbeitet.";
    as_usual = "As usual", "Wie üblich";
    one_on_each_line = "One on each line.", "Eins pro Zeile.";
    pairs_on_each_line = "One name = value on each line.", "Ein Name = Wert pro Zeile.";
    or_words = "Also: {0}.", "Auch: {0}.";
    default_is = "If empty: {0}.", "Wenn leer: {0}.";
    for_example = "For example: {0}", "Zum Beispiel: {0}";
    site_gone = "Another program has removed or renamed {0}. Your input is kept until you close the form.",
        "Ein anderes Programm hat {0} entfernt oder umbenannt. Deine Eingaben bleiben, bis du das Formular schließt.";
    close = "Close", "Schließen";
    edited_meanwhile = "Another program has edited this website. Its values are shown, and your input is kept.",
        "Ein anderes Programm hat diese Website bearbeitet. Seine Werte werden gezeigt, deine Eingaben bleiben.";
    unsaved_title = "Discard your input?", "Eingaben verwerfen?";
    unsaved_text = "You have changed something here that is not saved.",
        "Du hast hier etwas geändert, das nicht gespeichert ist.";
    keep_editing = "Keep editing", "Weiter bearbeiten";
    discard = "Discard", "Verwerfen";
    conflict_title = "Another program has edited the same", "Ein anderes Programm hat dasselbe bearbeitet";
    conflict_text_form = "The file has new values where you have typed others. If you keep your input, saving replaces those values.",
        "Die Datei hat neue Werte, wo du andere eingegeben hast. Wenn du deine Eingaben behältst, ersetzt das Speichern diese Werte.";
    conflict_text_file = "The file was saved by another program while you were typing. If you keep your text, saving replaces the other change.",
        "Die Datei wurde von einem anderen Programm gespeichert, während du geschrieben hast. Wenn du deinen Text behältst, ersetzt das Speichern die andere Änderung.";
    conflict_legend = "− in the file, + in your input", "− in der Datei, + in deinen Eingaben";
    conflict_line_ends = "Only the ends of lines differ.", "Nur die Zeilenenden unterscheiden sich.";
    line_number = "Line {0}", "Zeile {0}";
    lines_left_out = "… lines left out: {0}", "… ausgelassene Zeilen: {0}";
    keep_input = "Keep my input", "Meine Eingaben behalten";
    take_other = "Show the file", "Datei zeigen";

    // The configuration as text.
    text_saved = "The configuration is saved and in effect.", "Die Konfiguration ist gespeichert und wirksam.";
    text_reloaded = "Another program has edited the file. The new text is shown.",
        "Ein anderes Programm hat die Datei bearbeitet. Der neue Text wird gezeigt.";
    text_unsaved = "Not saved yet", "Noch nicht gespeichert";
    text_not_loaded = "The server has not loaded this text yet.", "Der Server hat diesen Text noch nicht geladen.";
    errors_counted = "Errors: {0}", "Fehler: {0}";
    line = "Line", "Zeile";
    problem = "Problem", "Problem";
    no_problems = "The server accepts this text.", "Der Server nimmt diesen Text an.";
    editor_hint = "Ctrl+Space proposes keys. Ctrl+S saves. F6 goes to the problems.",
        "Strg+Leertaste schlägt Schlüssel vor. Strg+S speichert. F6 führt zu den Problemen.";

    // Kinds of websites.
    kind_files = "Files", "Dateien";
    kind_php = "PHP scripts", "PHP-Skripte";
    kind_wordpress = "WordPress", "WordPress";
    kind_laravel = "Laravel", "Laravel";
    kind_proxy = "Another server", "Anderer Server";
    kind_application = "Application", "Anwendung";
    kind_controller = "Controller", "Controller";
    kind_redirect = "Redirects", "Weiterleitungen";
    kind_routes = "Rules and routes", "Regeln und Routen";
    kind_nothing = "Nothing yet", "Noch nichts";
    kind_welcome = "First page", "Erste Seite";
    kind_other = "Other", "Sonstiges";

    // Form that adds a website.
    add_subtitle = "Choose a folder. The rest is suggested.", "Wähle einen Ordner. Der Rest wird vorgeschlagen.";
    add_elsewhere_subtitle = "The website and its folder are on the computer of the server.",
        "Die Website und ihr Ordner liegen auf dem Computer des Servers.";
    first_page_text = "RockNet serves this page. Add your own website in the RockNet window.",
        "RockNet liefert diese Seite aus. Füge im RockNet-Fenster eine eigene Website hinzu.";
    start_page_text = "This page is {0} in its folder.", "Diese Seite ist {0} in ihrem Ordner.";
    folder = "Folder", "Ordner";
    folder_elsewhere_help = "The path on the computer of the server. The server looks into it.",
        "Der Pfad auf dem Computer des Servers. Der Server sieht dort nach.";
    folder_help = "The folder with the files of the website. You can also drop it onto the window.",
        "Der Ordner mit den Dateien der Website. Du kannst ihn auch auf das Fenster ziehen.";
    choose_folder = "Choose …", "Auswählen …";
    chooser_title = "Choose a folder", "Ordner auswählen";
    chooser_hint = "Down goes to the list, Enter opens, Ctrl+Space completes.",
        "Pfeil ab führt zur Liste, Enter öffnet, Strg+Leertaste ergänzt.";
    use_folder = "Use this folder", "Diesen Ordner verwenden";
    new_folder = "New folder", "Neuer Ordner";
    new_folder_name = "new-folder", "neuer-ordner";
    create_folder = "Create this folder", "Diesen Ordner anlegen";
    hidden_folders = "Show hidden folders", "Versteckte Ordner zeigen";
    parent_folder = "↑ Folder above", "↑ Ordner darüber";
    folders = "Folders", "Ordner";
    folder_chosen = "Chosen: {0}", "Gewählt: {0}";
    no_folders = "Chosen: {0}. There are no folders in it.", "Gewählt: {0}. Darin sind keine Ordner.";
    no_such_folder = "No folder begins with \"{0}\". It can be created.", "Kein Ordner beginnt mit „{0}“. Er kann angelegt werden.";
    folders_begin = "These folders begin with \"{0}\".", "Diese Ordner beginnen mit „{0}“.";
    folders_left_out = "{0} more are not shown. Type the beginning of the name.",
        "{0} weitere werden nicht gezeigt. Tippe den Anfang des Namens.";
    folder_denied = "Your account may not do this here.", "Dein Konto darf das hier nicht.";
    folder_exists = "There is a file or folder with this name.", "Es gibt eine Datei oder einen Ordner mit diesem Namen.";
    kind = "What it shows", "Was sie zeigt";
    kind_found = "Detected: {0}", "Erkannt: {0}";
    kind_help = "Suggested from the contents of the folder.", "Aus dem Inhalt des Ordners vorgeschlagen.";
    name = "Name", "Name";
    name_help = "The name in the address bar. Names that end in .localhost lead to this computer.",
        "Der Name in der Adresszeile. Namen mit der Endung .localhost führen zu diesem Computer.";
    https = "HTTPS: encrypted", "HTTPS: verschlüsselt";
    https_local = "With a certificate of the server's own authority. The next page shows whether browsers trust it.",
        "Mit einem Zertifikat der eigenen Stelle des Servers. Die nächste Seite zeigt, ob Browser ihm vertrauen.";
    https_public = "With a certificate of a public authority, which must reach this name on port 80 or 443.",
        "Mit einem Zertifikat einer öffentlichen Stelle, die diesen Namen an Port 80 oder 443 erreichen muss.";
    https_off = "Other computers on the way can read and change the pages, and browsers call the website not secure.",
        "Andere Computer auf dem Weg können die Seiten lesen und ändern, und Browser nennen die Website nicht sicher.";
    name_elsewhere_help = "The name in the address bar, such as www.example.com. It leads to the computer of the server.",
        "Der Name in der Adresszeile, etwa www.example.com. Er führt zum Computer des Servers.";
    proxy_elsewhere_help = "The address as the computer of the server reaches it, such as http://127.0.0.1:3000.",
        "Die Adresse, wie sie der Computer des Servers erreicht, etwa http://127.0.0.1:3000.";
    proxy_address = "Address of the running server", "Adresse des laufenden Servers";
    proxy_help = "For example a development server that you have started.",
        "Zum Beispiel ein Entwicklungsserver, den du gestartet hast.";
    proxy_found = "Found listening: {0}", "Gefunden: {0}";
    cancel = "Cancel", "Abbrechen";
    done = "Done", "Fertig";
    open_in_browser = "Open in browser", "Im Browser öffnen";
    fill_in = "Fill in this field.", "Fülle dieses Feld aus.";
    folder_waits = "Still waiting for this folder. You can go to another one meanwhile.",
        "Dieser Ordner antwortet noch nicht. Du kannst inzwischen zu einem anderen gehen.";
    folder_not_tried = "This folder was not looked at, because too many others do not reply. Try again later.",
        "Dieser Ordner wurde nicht angesehen, weil zu viele andere nicht antworten. Versuche es später noch einmal.";
    folder_crashed = "An error of this program has ended the look into this folder. Try again.",
        "Ein Fehler dieses Programms hat den Blick in diesen Ordner beendet. Versuche es noch einmal.";
    folder_not_utf8 = "The name of this folder is not text in UTF-8, so no configuration can name it. Rename the folder.",
        "Der Name dieses Ordners ist kein Text in UTF-8, daher kann ihn keine Konfiguration nennen. Benenne den Ordner um.";
    folder_ends_in_space = "There is no such folder. Spaces at the end of a name are left out: rename a folder that has them.",
        "Diesen Ordner gibt es nicht. Leerzeichen am Ende eines Namens entfallen: Benenne einen solchen Ordner um.";
    is_a_file = "This is a file. A website needs its folder.", "Das ist eine Datei. Eine Website braucht ihren Ordner.";
    dropped_several = "Only the first folder is used: {0}", "Nur der erste Ordner wird verwendet: {0}";
    dropped_elsewhere = "The server is on another computer. Type the path of a folder of that computer.",
        "Der Server ist auf einem anderen Computer. Gib den Pfad eines Ordners jenes Computers ein.";
    not_a_folder = "There is no such folder.", "Diesen Ordner gibt es nicht.";
    not_readable = "This folder cannot be read.", "Dieser Ordner kann nicht gelesen werden.";
    name_taken = "There is a website with this name already.", "Es gibt schon eine Website mit diesem Namen.";
    use_this = "Use {0}", "{0} verwenden";
    check_folder = "The folder exists and can be read", "Der Ordner ist vorhanden und lesbar";
    check_folder_busy = "Looking into the folder", "Der Ordner wird angesehen";
    check_name = "The name is free", "Der Name ist frei";
    check_config = "The server accepts these settings", "Der Server nimmt diese Einstellungen an";
    check_config_busy = "The server checks these settings", "Der Server prüft diese Einstellungen";
    check_start = "There is a start page", "Es gibt eine Startseite";
    check_no_start = "The folder has no start page (index.html)", "Der Ordner hat keine Startseite (index.html)";
    create_start = "Create one", "Eine anlegen";
    check_reply = "The website replies", "Die Website antwortet";
    check_redirect = "The website replies with a redirect", "Die Website antwortet mit einer Weiterleitung";
    check_no_reply = "The website does not reply as it should: {0}", "Die Website antwortet nicht wie erwartet: {0}";
    check_reply_busy = "Waiting for the website to reply", "Warte auf die Antwort der Website";
    check_resolves = "The name leads to this computer", "Der Name führt zu diesem Computer";
    check_resolves_browser = "Browsers find the name; other programs on this computer may not",
        "Browser finden den Namen; andere Programme auf diesem Computer womöglich nicht";
    check_resolves_not = "The name does not lead to this computer", "Der Name führt nicht zu diesem Computer";
    check_hosts = "The name does not lead to this computer. Add this line to the file /etc/hosts: {0}",
        "Der Name führt nicht zu diesem Computer. Füge diese Zeile in die Datei /etc/hosts ein: {0}";
    copy_line = "Copy line", "Zeile kopieren";
    check_php_missing = "PHP is missing: {0}", "PHP fehlt: {0}";
    check_trust = "Browsers trust the certificate", "Browser vertrauen dem Zertifikat";
    check_trust_failed = "It is not known whether browsers trust the certificate: {0}",
        "Es ist nicht bekannt, ob Browser dem Zertifikat vertrauen: {0}";
    check_certificate = "The certificate is not ready yet", "Das Zertifikat ist noch nicht bereit";
    trust = "Trust it", "Vertrauen";
    trusted_now = "The stores of this account trust the certificates of this computer.",
        "Die Speicher dieses Kontos vertrauen den Zertifikaten dieses Computers.";
    added_title = "{0} is ready", "{0} ist bereit";
    added_subtitle = "Saved in {0}", "Gespeichert in {0}";

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

    // Certificates, check-up, history.
    no_certificates_title = "No website uses HTTPS", "Keine Website nutzt HTTPS";
    no_certificates_text = "Websites with a name get a certificate by themselves.",
        "Websites mit einem Namen bekommen von selbst ein Zertifikat.";
    names = "Names", "Namen";
    issuer = "Issued by", "Ausgestellt von";
    valid = "Valid", "Gültig";
    days_left = "{0} days left", "noch {0} Tage";
    one_day_left = "1 day left", "noch 1 Tag";
    expired = "Expired", "Abgelaufen";
    no_certificate = "No certificate", "Kein Zertifikat";
    check = "Check", "Prüfung";
    result = "Result", "Ergebnis";
    found = "Found", "Befund";
    good = "Good", "Gut";
    fair = "Could be better", "Geht besser";
    bad = "Needs attention", "Braucht Aufmerksamkeit";
    check_up_counted = "Checks: {0}. Good: {1}. Could be better: {2}. In need of attention: {3}.",
        "Prüfungen: {0}. Gut: {1}. Verbesserbar: {2}. Zu beachten: {3}.";
    check_again = "Check again", "Erneut prüfen";
    no_changes_title = "No changes yet", "Noch keine Änderungen";
    no_changes_text = "Every change by this window, the dashboard or a command is kept here, and can be taken back.",
        "Jede Änderung durch dieses Fenster, das Dashboard oder einen Befehl steht hier und kann zurückgenommen werden.";
    certificates_help = "Certificates of the websites. Those of this computer and of Let's Encrypt are renewed in time.",
        "Zertifikate der Websites. Die dieses Computers und von Let's Encrypt werden rechtzeitig erneuert.";
    browsers = "Browsers", "Browser";
    browsers_help = "Trust in the certificates that this computer issues for its own websites.",
        "Vertrauen in die Zertifikate, die dieser Computer für seine eigenen Websites ausstellt.";
    browsers_warn = "Browsers warn of certificates of this computer.", "Browser warnen vor Zertifikaten dieses Computers.";
    store_of_system = "Programs of the system", "Programme des Systems";
    store_trusted = "{0}: trusted ({1})", "{0}: vertraut ({1})";
    store_not_yet = "{0}: not yet ({1})", "{0}: noch nicht ({1})";
    system_not_yet = "Programs such as curl and PHP: not yet. This command in a terminal adds them: {0}",
        "Programme wie curl und PHP: noch nicht. Dieser Befehl in einem Terminal fügt sie hinzu: {0}";
    store_unknown = "{0}: not known: {1}", "{0}: nicht bekannt: {1}";
    no_stores_title = "No browser was found", "Kein Browser wurde gefunden";
    no_stores_text = "No website has needed a certificate of this computer yet, or no browser of this account keeps certificates.",
        "Noch keine Website brauchte ein Zertifikat dieses Computers, oder kein Browser dieses Kontos speichert Zertifikate.";
    stores_elsewhere_title = "The server is on another computer", "Der Server ist auf einem anderen Computer";
    stores_elsewhere_text = "Open this window there to let its browsers trust its certificates.",
        "Öffne dieses Fenster dort, damit die Browser dort den Zertifikaten vertrauen.";
    copy_command = "Copy command", "Befehl kopieren";
    text_copied = "The text was copied.", "Der Text wurde kopiert.";
    copied = "Copied: {0}", "Kopiert: {0}";
    renewal = "Renewal", "Erneuerung";
    renewed_by_itself = "By itself", "Von selbst";
    renewed_by_you = "Replace the files", "Dateien ersetzen";
    not_renewed = "Cannot be renewed", "Nicht erneuerbar";
    change = "Change", "Änderung";
    lines_changed = "Lines", "Zeilen";
    time = "Time", "Zeit";
    go_back = "Go back to before this change", "Zurück vor diese Änderung";
    discard_edits_title = "This would discard edits by hand", "Dies würde Änderungen von Hand verwerfen";
    discard_edits_text = "They are not in the history, so they cannot be restored.",
        "Sie sind nicht im Verlauf und lassen sich nicht wiederherstellen.";
    keep_edits = "Keep them", "Behalten";
    discard_edits = "Discard them", "Verwerfen";
    undo_last = "Take back the last change", "Letzte Änderung zurücknehmen";
    show_change = "Show lines", "Zeilen zeigen";
    all_changes = "All changes", "Alle Änderungen";
    change_subtitle = "{0}, {1}, lines: {2}", "{0}, {1}, Zeilen: {2}";
    no_diff = "The lines of this change are not known.", "Die Zeilen dieser Änderung sind nicht bekannt.";

    // Settings.
    appearance = "Appearance", "Erscheinungsbild";
    as_desktop = "As the desktop", "Wie der Desktop";
    no_desktop_wish = "The desktop has no wish, so the window is light.",
        "Der Desktop hat keinen Wunsch, daher ist das Fenster hell.";
    light = "Light", "Hell";
    dark = "Dark", "Dunkel";
    language = "Language", "Sprache";
    server_place = "Server", "Server";
    server_place_help = "The server that this window shows. Reach one elsewhere by ssh -L.",
        "Der Server, den dieses Fenster zeigt. Einen anderswo erreichst du mit ssh -L.";
    place_here = "On this computer", "Auf diesem Computer";
    place_socket = "At a forwarded socket", "An einem weitergeleiteten Socket";
    place_address = "At an address, with a token", "An einer Adresse, mit Token";
    server_socket = "Socket", "Socket";
    server_socket_help = "The local end: ssh -L $XDG_RUNTIME_DIR/rocknet.sock:/var/lib/rocknet/admin/control.sock HOST",
        "Das hiesige Ende: ssh -L $XDG_RUNTIME_DIR/rocknet.sock:/var/lib/rocknet/admin/control.sock HOST";
    server_address_help = "For example 127.0.0.1:7625, the local end of ssh -L 7625:127.0.0.1:7625 HOST",
        "Zum Beispiel 127.0.0.1:7625, das hiesige Ende von ssh -L 7625:127.0.0.1:7625 HOST";
    server_token = "Token", "Token";
    server_token_help = "From the file admin/token in the state folder of the server. It is kept in a file that only you can read.",
        "Aus der Datei admin/token im Zustandsordner des Servers. Es liegt in einer Datei, die nur du lesen kannst.";
    not_a_path = "This is not an absolute path.", "Das ist kein absoluter Pfad.";
    not_an_address = "This is not an address such as 127.0.0.1:7625.", "Das ist keine Adresse wie 127.0.0.1:7625.";
    not_local = "The token would be sent unencrypted. Forward the port by ssh -L, and enter its local end.",
        "Das Token würde unverschlüsselt gesendet. Leite den Port mit ssh -L weiter und trage das hiesige Ende ein.";
    not_a_token = "A token has no spaces or quotes.", "Ein Token hat keine Leerzeichen oder Anführungszeichen.";
    connect = "Connect", "Verbinden";
    connected_to = "Connected to {0}", "Verbunden mit {0}";
    keys = "Keys", "Tasten";
    settings_help = "Saved at once, for this account. A change of the server begins with Connect.",
        "Wird sofort gespeichert, für dieses Konto. Ein anderer Server gilt ab „Verbinden“.";
    show_keys = "Show the keys", "Tasten zeigen";
    keys_help = "Every function works by keyboard. Esc or F1 closes this list.",
        "Alles geht mit der Tastatur. Esc oder F1 schließt diese Liste.";
    key = "Key", "Taste";
    key_effect = "Effect", "Wirkung";
    key_add = "Ctrl+N: Add a website", "Strg+N: Website hinzufügen";
    key_edit = "F2: Edit the selected website", "F2: Gewählte Website bearbeiten";
    key_open = "Enter: Open the selected row, or press the button with the focus",
        "Enter: Gewählte Zeile öffnen, oder die Schaltfläche mit dem Fokus drücken";
    key_remove = "Del: Remove the selected website", "Entf: Gewählte Website entfernen";
    key_log = "Ctrl+L: Log of the selected website", "Strg+L: Log der gewählten Website";
    key_filter = "Ctrl+F: Filter", "Strg+F: Filtern";
    key_sort = "Ctrl+1 to Ctrl+9: Sort by a column, again in reverse order",
        "Strg+1 bis Strg+9: Nach einer Spalte sortieren, noch einmal umgekehrt";
    key_refresh = "F5: Reload the configuration, or the list of the page",
        "F5: Konfiguration oder die Liste der Seite neu laden";
    key_save = "Ctrl+S: Save the form or the text", "Strg+S: Formular oder Text speichern";
    key_undo = "Ctrl+Z: Take the last change back", "Strg+Z: Letzte Änderung zurücknehmen";
    key_text = "Ctrl+E: Edit the configuration as text", "Strg+E: Konfiguration als Text bearbeiten";
    key_complete = "Ctrl+Space: Propose keys of the text, complete the path of a folder",
        "Strg+Leertaste: Schlüssel des Textes vorschlagen, den Pfad eines Ordners ergänzen";
    key_findings = "F6: Go from the text to its problems", "F6: Vom Text zu seinen Problemen";
    key_folder = "Down: Go from the path of a folder to the list", "Pfeil ab: Vom Pfad eines Ordners zur Liste";
    key_settings = "Ctrl+,: Settings", "Strg+,: Einstellungen";
    key_leave = "Esc: Leave the form, the text or the list", "Esc: Formular, Text oder Liste verlassen";
    key_parts = "Tab: Go to the next part of the window", "Tab: Zum nächsten Teil des Fensters";
    key_move = "Arrows, Page Up, Page Down: Move in lists and texts",
        "Pfeile, Bild auf, Bild ab: In Listen und Texten bewegen";
    key_help = "F1: Show this list", "F1: Diese Liste zeigen";
    key_quit = "Ctrl+Q: Close the window; the server continues", "Strg+Q: Fenster schließen; der Server läuft weiter";
}
