//! Texts about editing: the form of a website, and the configuration as text.

macro_rules! editing {
    ($($before:tt)*) => {
        subjects! {
            $($before)*

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
        }
    };
}
