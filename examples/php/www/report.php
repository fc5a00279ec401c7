<?php
// A real site checks the permissions of the client here.
header('Content-Type: text/csv; charset=utf-8');
header('Content-Disposition: attachment; filename="june.csv"');
header('X-Accel-Redirect: /reports/june.csv');
