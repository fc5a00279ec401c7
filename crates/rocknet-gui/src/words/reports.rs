//! Texts about certificates, the check-up and the history.

macro_rules! reports {
    ($($before:tt)*) => {
        subjects! {
            $($before)*

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
        }
    };
}
