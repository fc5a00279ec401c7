<?php
// Here a real site looks at who asks.
header('Content-Type: text/csv; charset=utf-8');
header('Content-Disposition: attachment; filename="june.csv"');
header('X-Accel-Redirect: /reports/june.csv');
