//! Texts of the settings, and of the list of keys.

macro_rules! settings {
    ($($before:tt)*) => {
        subjects! {
            $($before)*

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
    };
}
