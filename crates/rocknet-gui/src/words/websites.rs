//! Texts about the list of websites.

macro_rules! websites {
    ($($before:tt)*) => {
        subjects! {
            $($before)*

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
        }
    };
}
