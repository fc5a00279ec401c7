//! Texts of the form that adds a website, and of the chooser of folders.

macro_rules! adding {
    ($($before:tt)*) => {
        subjects! {
            $($before)*

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
        }
    };
}
