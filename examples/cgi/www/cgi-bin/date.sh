#!/bin/sh
printf 'Content-Type: text/plain\r\n\r\n'
printf 'The harbour clock says %s.\n' "$(date +%H:%M)"
